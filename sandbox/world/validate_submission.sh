#!/bin/sh
# Check whether a submission is valid: sh validate_submission.sh path/to/submission.csv
url=@URL@/validate
file=${1:?usage: validate_submission.sh FILE}
if [ ! -f "$file" ]; then
    echo "Submission invalid! There is no file $file."
    exit 1
fi
if command -v curl >/dev/null 2>&1; then
    answer=$(curl --silent --show-error --max-time 3600 --noproxy '*' \
        -F 'file=@-;filename=submission.csv' "$url" <"$file") || exit 1
    [ -n "$answer" ] || { echo "The validation service is not available: try again in a minute." >&2; exit 1; }
    echo "$answer"
    exit 0
fi
exec "${MLEBENCH_PYTHON:-python3}" - "$file" "$url" <<'EOF_PYTHON'
import http.client, os, sys, urllib.parse

path, url = sys.argv[1], urllib.parse.urlsplit(sys.argv[2])
mark = "----submission-of-a-run-5f1c0e0b7a"
head = '--%s\r\nContent-Disposition: form-data; name="file"; filename="submission.csv"\r\n\r\n' % mark
tail = "\r\n--%s--\r\n" % mark


def form():
    yield head.encode()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 16):
            yield chunk
    yield tail.encode()


connection = http.client.HTTPConnection(url.netloc, timeout=3600)
headers = {
    "Content-Type": "multipart/form-data; boundary=" + mark,
    "Content-Length": str(len(head) + os.path.getsize(path) + len(tail)),
}
connection.request("POST", url.path, form(), headers)
answer = connection.getresponse().read().decode()
print(answer or sys.exit("The validation service is not available: try again in a minute."))
EOF_PYTHON
