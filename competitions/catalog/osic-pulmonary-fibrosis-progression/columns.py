ID = "Patient_Week"
