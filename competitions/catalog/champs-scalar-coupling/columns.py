TARGET = "scalar_coupling_constant"
