#include "impi/tester/page.h"

namespace weft::impi::tester {
namespace {

constexpr std::string_view kHtml = R"(<!DOCTYPE html>
<html lang="en">
<head>
<title>weft-impi-test</title>
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>
</head>
<body>
<h1>IMPI 0.0: conformance</h1>
<p><button id="start" disabled>Start</button> <progress id="progress" value="0"></progress> <span id="summary"></span></p>
<table>
<thead><tr><th>Clause</th><th>Result</th><th>What the script tests</th><th>Steps</th></tr></thead>
<tbody id="scripts"></tbody>
</table>
</body>
</html>
)";

constexpr std::string_view kCss = R"(body { font-family: sans-serif; margin: 2em; }
table { border-collapse: collapse; }
td, th { padding: 0.2em 0.8em; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; }
.passed .result { color: #070; }
.failed .result { color: #b00; font-weight: bold; }
.runs .result { color: #06c; }
pre { background: #f4f4f4; padding: 0.5em; overflow-x: auto; max-width: 90vw; }
)";

// Text of a peer is put into the page as text only.
constexpr std::string_view kScript = R"('use strict';
const element = (name, text, parent, className) => {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  parent.append(made);
  return made;
};

function showFailure(entry, cell) {
  const details = element('details', '', cell, 'failure');
  element('summary', entry.file + ':' + entry.line + ': ' + entry.step, details);
  element('p', entry.reason, details, 'reason');
  if (entry.trace.length) {
    element('p', 'What was sent and came:', details);
    element('pre', entry.trace.join('\n'), details, 'trace');
  }
  if (entry.output) {
    element('p', 'What the implementation under test printed:', details);
    element('pre', entry.output, details, 'output');
  }
  return details;
}

const rows = new Map();  // by file: the row, and what it shows

function show(entry) {
  const shown = JSON.stringify(entry);
  let row = rows.get(entry.file);
  if (row && row.shown === shown) return;
  if (!row) {
    row = {tr: document.createElement('tr')};
    document.getElementById('scripts').append(row.tr);
    rows.set(entry.file, row);
  }
  row.shown = shown;
  row.tr.className = entry.state;
  row.tr.replaceChildren();
  element('td', entry.clause, row.tr);
  element('td', entry.state, row.tr, 'result');
  const about = element('td', entry.about, row.tr);
  if (entry.state === 'failed') showFailure(entry, about);
  element('td', entry.done + ' of ' + entry.steps, row.tr);
}

function showAll(state) {
  state.entries.forEach(show);
  const count = name => state.entries.filter(entry => entry.state === name).length;
  const passed = count('passed'), failed = count('failed'), all = state.entries.length;
  const progress = document.getElementById('progress');
  progress.max = all;
  progress.value = passed + failed;
  document.getElementById('summary').textContent = passed + ' of ' + all + ' passed' + (failed ? ', ' + failed + ' failed' : '');
  document.getElementById('start').disabled = state.running;
  document.body.dataset.runs = state.runs;
  document.body.dataset.state = state.running ? 'running' : passed + failed === all ? 'done' : 'ready';
}

async function look() {
  try {
    const answer = await fetch('state');
    if (answer.ok) showAll(await answer.json());
  } catch (error) {
    document.getElementById('summary').textContent = 'weft-impi-test does not answer';
    document.getElementById('start').disabled = true;
  }
  setTimeout(look, 300);
}

document.getElementById('start').addEventListener('click', async () => {
  document.getElementById('start').disabled = true;
  await fetch('start', {method: 'POST'});
});
look();
)";

PageAnswer Plain(int status, std::string_view text) { return {HttpAnswer(status, "text/plain", text), false}; }

}  // namespace

PageAnswer AnswerFor(const HttpRequest& request, std::string_view secret, const Board& board) {
  const std::string folder = "/" + std::string(secret) + "/";
  if (!request.target.starts_with(folder))
    return Plain(404, "not found: take the whole address that weft-impi-test printed\n");
  const std::string name = request.target.substr(folder.size());
  if (name == "start") {
    if (request.method != "POST") return Plain(405, "POST starts the scripts\n");
    if (board.running) return Plain(409, "the scripts run already\n");
    return {HttpAnswer(202, "text/plain", "started\n"), true};
  }
  if (request.method != "GET") return Plain(405, "this can only be read\n");
  if (name.empty()) return {HttpAnswer(200, "text/html", kHtml), false};
  if (name == "page.css") return {HttpAnswer(200, "text/css", kCss), false};
  if (name == "page.js") return {HttpAnswer(200, "text/javascript", kScript), false};
  if (name == "state") return {HttpAnswer(200, "application/json", JsonOf(board)), false};
  return Plain(404, "not found\n");
}

}  // namespace weft::impi::tester
