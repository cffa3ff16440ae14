#!/bin/sh
# Copy the sample submission, unpacking it if it is compressed.
set -eu

sample=${SAMPLE_SUBMISSION:-}
if [ -z "$sample" ] || [ ! -f "$sample" ]; then
    # The path is not set: take the shortest one that looks like a sample submission.
    sample=$(find "$DATA_DIR" -type f -iname '*sample*submission*' \( -iname '*.csv' -o -iname '*.csv.zip' -o -iname '*.csv.gz' \
        -o -iname '*.zip' -o -iname '*.7z' \) | awk '{ print length($0), $0 }' | sort -n | head -n 1 | cut -d ' ' -f 2-)
fi
if [ -z "$sample" ]; then
    echo "there is no sample submission in $DATA_DIR" >&2
    exit 1
fi

target=$SUBMISSION_DIR/submission.csv
case $sample in
*.zip) "${MLEBENCH_PYTHON:-python3}" - "$sample" >"$target" <<'PYTHON' ;;
import shutil, sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as archive:
    name = min((n for n in archive.namelist() if n.endswith(".csv") and not n.startswith("__MACOSX")), key=len)
    shutil.copyfileobj(archive.open(name), sys.stdout.buffer)
PYTHON
*.gz) gzip -dc "$sample" >"$target" ;;
*.7z) "${MLEBENCH_PYTHON:-python3}" - "$sample" "$TMPDIR" "$target" <<'PYTHON' ;;
import pathlib, shutil, sys
import py7zr

with py7zr.SevenZipFile(sys.argv[1]) as archive:
    archive.extractall(sys.argv[2] + "/sample")
shutil.copy(min(pathlib.Path(sys.argv[2], "sample").rglob("*.csv"), key=lambda p: len(str(p))), sys.argv[3])
PYTHON
*) cp -- "$sample" "$target" ;;
esac
chmod u+w "$target"
echo "copied $sample"
