"use strict";
// Asks the question of the form, shows what is proven of it so far, and then the answer. Text is only ever set as text.
(() => {
  const element = (id) => document.getElementById(id);
  const form = element("ask");
  const PAUSE = 400;  // milliseconds between two looks
  let current = "";  // the name of the question that is shown

  const show = (id, visible) => { element(id).hidden = !visible; };
  const path = (name, more = "") => `/questions/${name}${more}`;

  async function call(address, body) {
    const asked = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body };
    const answer = await fetch(address, asked);
    const isJson = (answer.headers.get("Content-Type") || "").startsWith("application/json");
    return isJson ? answer.json() : { message: (await answer.text()).trim() };
  }

  function clear() {
    for (const error of document.querySelectorAll(".error")) error.hidden = true;
    for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  }

  /** The message beside its field; a line of the source that it names is selected. */
  function complain({ field, message, details = [] }) {
    const input = element(field) || element("source"), error = element(`${input.id}-error`) || element("source-error");
    if (element("more").contains(input)) element("more").open = true;
    error.textContent = [message, ...details].join("\n");
    error.hidden = false;
    input.setAttribute("aria-invalid", "true");
    input.focus();
    const line = /^kernel\.\w+:(\d+)/.exec(message);
    if (line) {
      const text = element("source");
      const before = text.value.split("\n").slice(0, line[1] - 1).join("\n").length + (line[1] > 1);
      const end = text.value.indexOf("\n", before);
      text.setSelectionRange(before, end < 0 ? text.value.length : end);
      text.scrollTop = (line[1] - 4) * parseFloat(getComputedStyle(text).lineHeight);
    }
    error.scrollIntoView({ block: "nearest" });
  }

  function busy(running) {
    element("solve").setAttribute("aria-disabled", running);
    show("stop", running);
  }

  function tell(title, steps = [], line = "") {
    show("answer", true);
    if (element("verdict").textContent !== title) element("verdict").textContent = title;
    show("interval", steps.length > 0);
    if (steps.length) {
      const last = steps[steps.length - 1];
      element("lower").textContent = last.lower;
      element("upper").textContent = last.upper;
      element("evidence").textContent = `proven, by ${last.evidence}; the verdict will name its conditions`;
    }
    element("progress").textContent = line;
  }

  function answer(name, state) {
    tell(`Answered after ${state.seconds.toFixed(1)} s`);
    element("report").title = document.title = state.verdict;
    for (const id of ["save", "alone"]) element(id).href = path(name, "/report.html");
    element("bundle").href = path(name, "/evidence.json");
    element("report").src = path(name, "/report.html");
    show("done", true);
    element("verdict").focus();
  }

  /** Look at a question until it has an answer, or another one is asked. */
  async function follow(name) {
    current = name;
    show("done", false);
    busy(true);
    tell("Asked");
    element("answer").scrollIntoView({ block: "nearest" });
    for (let state = null; current === name; await new Promise((done) => setTimeout(done, PAUSE))) {
      try {
        state = await call(path(name));
      } catch {
        tell("The server does not answer", [], "Is it still running? This page goes on trying.");
        continue;
      }
      if (current !== name) return;
      if (state.state === "waiting") {
        tell("Waiting", [], state.ahead ? `${state.ahead} questions are before this one.` : "It is the next.");
      } else if (state.state === "running") {
        tell("Solving", state.steps, `${Math.round(state.seconds)} s. ${state.line}`);
      } else {
        busy(false);
        current = "";
        if (state.state === "answered") answer(name, state);
        else if (state.state === "refused") { show("answer", false); complain(state); }
        else tell("This answer is no longer kept", [], "Ask again.");
        return;
      }
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (current) return;
    clear();
    current = "asking";
    const values = Object.fromEntries([...new FormData(form)].filter(([, value]) => typeof value === "string" && value));
    let asked;
    try {
      asked = await call("/questions", JSON.stringify(values));
    } catch {
      asked = { message: "the server does not answer: is it still running?" };
    }
    current = "";
    if (!asked.name) { complain(asked); return; }
    history.replaceState(null, "", `#${asked.name}`);
    follow(asked.name);
  });

  element("stop").addEventListener("click", () => current && call(path(current, "/stop"), ""));

  element("file").addEventListener("change", async (event) => {
    const file = event.target.files[0];
    if (!file) return;
    element("source").value = await file.text();
    const kind = form.querySelector(`[name="kind"][value="${file.name.endsWith(".cu") ? "cuda" : "ptx"}"]`);
    if (kind) kind.checked = true;
  });

  const known = /^#([\w-]{22})$/.exec(location.hash);
  if (known) follow(known[1]);
})();
