"""Hold out whole plays with their labels, tracking, helmets and videos.

Tables are read with pandas' defaults, because its fast float parser (`float_precision=None`) and its type inference in
chunks decide how numbers are written. All tables together (10 million rows) take less than 5 GB of memory.
"""

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_by

TABLES = ("baseline_helmets", "player_tracking", "video_metadata")
VIEWS = ("All29", "Endzone", "Sideline")


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    labels = raw.read_csv("train_labels.csv", float_precision=None, texts="arrow")
    if edition == "v1":  # v2 fixes games-on-both-sides
        train, test = hold_out_by(labels, "game_play", 0.1)
    else:  # a play is named by its game and its number
        games = labels.assign(game=labels["game_play"].str.partition("_")[0])
        train, test = (part.drop(columns="game") for part in hold_out_by(games, "game", 0.1))
    out = Preparation()
    out.public.table("train_labels.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test[["contact_id"]].assign(contact=0))
    tables = {name: raw.read_csv(f"train_{name}.csv", float_precision=None, texts="arrow") for name in TABLES}
    for part, rows in (("train", train), ("test", test)):
        plays = rows["game_play"].unique()
        for name, table in tables.items():
            out.public.table(f"{part}_{name}.csv", table[table["game_play"].isin(plays)])
        for view in VIEWS:
            out.public.copies(raw.each(f"train/{{}}_{view}.mp4", plays, to=f"{part}/{{}}_{view}.mp4"))
    return out
