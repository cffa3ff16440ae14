#!/bin/sh
# Ask a service of this run for a score; --help says how.
# Exit code: 0 scored, 1 a file is wrong, 2 not scored, because the service is not available or was asked too often.
url=@URL@
if [ $# -ne @COUNT@ ] || [ "$1" = --help ]; then
    cat <<'EOF_HELP'
@HELP@
EOF_HELP
    [ "$1" = --help ] && exit 0
    exit 2
fi
for file in "$@"; do
    if [ ! -f "$file" ]; then
        echo "There is no file $file." >&2
        exit 1
    fi
done
exec "${MLEBENCH_PYTHON:-python3}" - "$url" "$@" <<'EOF_PYTHON'
import http.client, json, os, sys, urllib.parse

files, url = dict(zip("@FIELDS@".split(), sys.argv[2:])), urllib.parse.urlsplit(sys.argv[1])
mark = "----files-of-a-run-5f1c0e0b7a"
tail = ("\r\n--%s--\r\n" % mark).encode()
opened = {}
for name, path in files.items():
    head = '\r\n--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s.csv"\r\n\r\n' % (mark, name, name)
    opened[name] = head.encode(), open(path, "rb")


def form():
    for head, file in opened.values():
        yield head
        while chunk := file.read(1 << 16):
            yield chunk
    yield tail


size = sum(len(head) + os.fstat(file.fileno()).st_size for head, file in opened.values()) + len(tail)
connection = http.client.HTTPConnection(url.netloc, timeout=3600)
headers = {"Content-Type": "multipart/form-data; boundary=" + mark, "Content-Length": str(size)}
try:
    connection.request("POST", url.path, form(), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
except (OSError, ValueError, http.client.HTTPException) as error:
    print("The service is not available: try again in a minute. (%s)" % error, file=sys.stderr)
    sys.exit(2)
if response.status == 200:
    print(answer["score"] if "score" in answer else json.dumps(answer))
    print(answer.get("note", ""), file=sys.stderr, end="\n" if "note" in answer else "")
    sys.exit(0)
print(answer["error"], file=sys.stderr)
sys.exit(1 if response.status == 400 else 2)
EOF_PYTHON
