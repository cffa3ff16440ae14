"""What S3-compatible servers and services lack, as rules of a proxy before a server that lacks nothing.

| rules | seen with |
|---|---|
| `content_md5` | MinIO before 2025, OVH, Dell ECS, CubeFS: DeleteObjects wants Content-MD5 |
| `no_bulk_delete` | Google's S3 door until 2025, gateways that pass on GET, PUT and DELETE only |
| `no_checksums` | Backblaze B2, Google's S3 door, s3proxy, OVH: headers and trailers with checksums are refused |
| `no_conditions` | Backblaze B2: PutObject with If-None-Match is refused |
| `ignored_conditions` | SeaweedFS before 3.97, Garage, old MinIO: If-None-Match is ignored |
| `no_parts` | simple gateways: no multipart uploads |
| `no_upload_listing` | MinIO (empty without the exact name), simple gateways: ListMultipartUploads |
| `no_list_v2` | Ceph before Nautilus, Riak CS: ListObjectsV2 |
| `other_region` | Garage, AWS: requests signed for another region |
| `virtual_hosts` | Alibaba OSS, Volcengine: the bucket must be in the host name |
"""

from __future__ import annotations

from collections.abc import Callable

from tests.s3.faults import Faults, Rule

_NOT_IMPLEMENTED = 501, "NotImplemented"

SERVERS: dict[str, Callable[[Faults], Rule]] = {
    "content_md5": lambda faults: faults.refuse(
        400, "MissingContentMD5", "POST", r"\?delete", r"\A(?![\s\S]*content-md5:)"
    ),
    "no_bulk_delete": lambda faults: faults.refuse(*_NOT_IMPLEMENTED, "POST", r"\?delete"),
    "no_checksums": lambda faults: faults.refuse(
        400, "InvalidArgument", "PUT", "", r"^x-amz-(sdk-)?(checksum|trailer)"
    ),
    "no_conditions": lambda faults: faults.refuse(*_NOT_IMPLEMENTED, "PUT", "", "if-none-match:"),
    "ignored_conditions": lambda faults: faults.refuse(200, "", "PUT", "", "if-none-match:"),
    "no_parts": lambda faults: faults.refuse(*_NOT_IMPLEMENTED, "POST", r"\?uploads"),
    "no_upload_listing": lambda faults: faults.refuse(*_NOT_IMPLEMENTED, "LIST", r"\?uploads"),
    "no_list_v2": lambda faults: faults.refuse(*_NOT_IMPLEMENTED, "LIST", "list-type=2"),
    "other_region": lambda faults: faults.refuse(400, "AuthorizationHeaderMalformed"),
    "virtual_hosts": lambda faults: faults.refuse(403, "SecondLevelDomainForbidden"),
}
