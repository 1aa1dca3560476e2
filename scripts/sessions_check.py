"""What the workbook's server keeps of readers who have left: `python scripts/sessions_check.py --sessions 300`.

Opens the pages in turn, one session after another, waits until all cells have run, and leaves. Prints the resident
memory and the threads of the server. Speaks to it as a page does, without a browser; needs Linux.
"""

import argparse
import itertools
import json
import sys
import time
import uuid
from urllib.parse import urlencode

from websockets.sync.client import connect
from workbook import SESSION_TTL, served, used

from c128a.show.page import PAGES


def visit(address: str, page: str) -> None:
    """Open a page, wait until all its cells have run, and leave."""
    query = urlencode({"session_id": f"s_{uuid.uuid4().hex[:6]}", "file": f"{page}.py"})
    with connect(f"{address.replace('http', 'ws')}/ws?{query}", max_size=None) as socket:
        while json.loads(socket.recv(timeout=120))["op"] != "completed-run":
            pass


def main() -> int:
    """Print a line for every tenth of the sessions; 1 where more is kept than the limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", type=int, default=300, help="how many, one after another (default 300)")
    parser.add_argument("--limit", type=int, default=600, help="MB that may be kept afterwards (default 600)")
    options = parser.parse_args()
    with served() as (address, server):
        print("before: {} MB, {} threads".format(*used(server)), flush=True)
        seen, began = [], time.monotonic()
        for number, page in enumerate(itertools.islice(itertools.cycle(PAGES), options.sessions), start=1):
            visit(address, page)
            seen.append(used(server))
            if number % max(options.sessions // 10, 1) == 0:
                passed = time.monotonic() - began
                print(f"{number} sessions, {passed:.0f} s: {{}} MB, {{}} threads".format(*seen[-1]), flush=True)
        print("most: {} MB, {} threads".format(*map(max, zip(*seen, strict=True))), flush=True)
        time.sleep(SESSION_TTL + 5)
        kept = used(server)
        print("after all have ended: {} MB, {} threads".format(*kept))
    return int(kept[0] > options.limit)


if __name__ == "__main__":
    sys.exit(main())
