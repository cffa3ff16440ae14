#!/bin/sh
# Check whether a submission is valid: sh validate_submission.sh [FILE], by default the submission of this run.
# Exit code: 0 valid, 1 invalid, 2 not checked, because the service is not available or was asked too often.
url=@URL@/validate
case $0 in
    */*) home=${0%/*} ;;
    *) home=. ;;
esac
file=${1:-$home/submission/submission.csv}
if [ ! -f "$file" ]; then
    echo "Submission invalid! There is no file $file."
    exit 1
fi
if command -v curl >/dev/null 2>&1; then
    answer=$(curl --silent --show-error --max-time 3600 --noproxy '*' \
        -F 'file=@-;filename=submission.csv' "$url" <"$file") || exit 2
    [ -n "$answer" ] || { echo "The validation service is not available: try again in a minute." >&2; exit 2; }
    echo "$answer"
    case $answer in
        '{"result":"Submission is valid."'*) exit 0 ;;
        '{"result":"Submission invalid!'*) exit 1 ;;
        *) exit 2 ;;
    esac
fi
exec "${MLEBENCH_PYTHON:-python3}" - "$file" "$url" <<'EOF_PYTHON'
import http.client, json, os, sys, urllib.parse

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
try:
    connection.request("POST", url.path, form(), headers)
    answer = connection.getresponse().read().decode()
except (OSError, http.client.HTTPException) as error:
    answer, reason = "", " (%s)" % error
else:
    reason = ""
if not answer:
    print("The validation service is not available: try again in a minute.%s" % reason, file=sys.stderr)
    sys.exit(2)
print(answer)
result = json.loads(answer).get("result")
sys.exit(2 if result is None else 0 if result == "Submission is valid." else 1)
EOF_PYTHON
