// The module @ranking-dsl/test: what tests of plans call. host.ask reaches the engine, and host.declare notes a test.
(function (host) {
  "use strict";
  const { ask } = host;

  // What redis, service and now have said: in the file for all its tests, in a test for that test. Data are never changed, but made anew.
  let scope = { data: {}, services: {}, now: undefined };
  let file = scope;
  let about = ""; // the user of forUsers
  let snapshots = 0; // of the test
  const set = (what) => { scope = { ...scope, ...what }; };

  const show = (v) => {
    if (typeof v === "bigint") return String(v);
    if (v === undefined) return "nothing";
    const text = JSON.stringify(v, (_, x) => (typeof x === "bigint" ? String(x) : x));
    return text.length > 300 ? text.slice(0, 300) + "…" : text;
  };
  const list = (ids) => (ids.length === 0 ? "no rows" : ids.slice(0, 50).map(show).join(", ") + (ids.length > 50 ? `, … (${ids.length})` : ""));
  const plain = (v) => typeof v === "object" && v !== null && !Array.isArray(v);

  // Redis.

  const kinds = new WeakMap();
  const made = (kind, value) => {
    const maker = Object.freeze({});
    kinds.set(maker, [kind, value]);
    return maker;
  };
  const scalar = (v) => typeof v === "string" || typeof v === "boolean" || typeof v === "bigint" || (typeof v === "number" && Number.isFinite(v));
  const stored = (key, value) => {
    const [kind, content] = kinds.get(value) ?? [Array.isArray(value) ? "list" : plain(value) ? "hash" : "string", value];
    const members = kind === "hash" ? Object.fromEntries(Object.entries(content).filter(([, v]) => v !== null && v !== undefined)) : content;
    const parts = kind === "string" ? [members] : Object.values(members);
    const wrong = parts.find((v) => !scalar(v));
    if (wrong !== undefined || parts.some((v) => v === undefined || v === null)) {
      throw new TypeError(`${key}: a ${kind.replace("_", " ")} of Redis holds texts, numbers and booleans, not ${show(wrong)}; json(value) makes a text of it`);
    }
    if (kind === "sorted_set" && parts.some((v) => typeof v !== "number")) throw new TypeError(`${key}: the scores of a sorted set are numbers`);
    return [kind, members];
  };
  const redis = (data) => {
    if (!plain(data)) throw new TypeError(`redis takes the values by key, as in redis({ "user:1": { country: "US" } })`);
    const all = { ...scope.data };
    for (const [key, value] of Object.entries(data)) {
      if (value === null || value === undefined) delete all[key];
      else all[key] = stored(key, value);
    }
    set({ data: all });
  };

  // Requests.

  const numbers = new WeakMap(); // of data that the host has
  const dataNumber = () => {
    if (!numbers.has(scope.data)) numbers.set(scope.data, ask("data", scope.data));
    return numbers.get(scope.data);
  };
  const canned = () => Object.fromEntries(Object.entries(scope.services).map(([name, v]) => [name, typeof v === "function" ? null : [v]]));
  const asked = (request) => {
    if (!plain(request)) throw new TypeError("a request is an object, as in rank({ user_id: 1 })");
    const whole = { plan: host.plan, now: scope.now, ...request };
    for (const name of Object.keys(whole)) if (whole[name] === undefined) delete whole[name];
    return { request: whole, data: dataNumber(), services: canned() };
  };
  const origins = new WeakMap(); // of answers and their shelves: what was asked
  const sent = (what) => {
    const answer = ask("rank", what);
    delete answer.request_id; // which no test can know
    delete answer.engine_request_id;
    return answer;
  };
  const rank = (request) => {
    const what = asked(request);
    const answer = sent(what);
    if (answer.error !== undefined) throw new Error(`the request fails: ${answer.error}${answer.detail ? ": " + answer.detail : ""}${answer.node ? ` (node ${answer.node}, ${answer.op})` : ""}`);
    for (const part of [answer, answer.candidates]) if (part) origins.set(part, what);
    for (const [shelf, rows] of Object.entries(answer.outputs ?? {})) origins.set(rows, { ...what, shelf });
    return answer;
  };
  const failure = (request) => {
    const answer = sent(asked(request));
    if (answer.error === undefined) throw new Error(`the request succeeds, and should fail`);
    return answer;
  };

  // Expectations.

  const near = (a, b) => a === b || Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));
  const same = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return near(a, b) || (a !== a && b !== b);
    if (typeof a === "bigint" || typeof b === "bigint") return typeof a !== "string" && typeof b !== "string" && a == b;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
    const left = Object.keys(a), right = Object.keys(b);
    return Array.isArray(a) === Array.isArray(b) && left.length === right.length && left.every((k) => right.includes(k) && same(a[k], b[k]));
  };
  const without = (object, name) => Object.fromEntries(Object.entries(object).filter(([other]) => other !== name));
  const has = (ids, id) => ids.some((other) => same(other, id));

  const fail = (message, lines = []) => {
    const error = new Error(message);
    error.detail = lines.filter((line) => line).join("\n");
    throw error;
  };

  class Expectation {
    #subject;
    #rows;
    #origin;
    constructor(subject, origin = origins.get(plain(subject) || Array.isArray(subject) ? subject : {})) {
      this.#subject = subject;
      this.#origin = origin;
      this.#rows = Array.isArray(subject) ? subject : plain(subject) ? subject.candidates ?? (subject.outputs && Object.values(subject.outputs).flat()) : undefined;
    }
    #all() {
      if (this.#rows === undefined || this.#origin === undefined) throw new TypeError("this expectation is for an answer of rank, or for a shelf of it");
      return this.#rows;
    }
    #ids() { return this.#all().map((row) => row.id); }
    #why(ids, more = {}) { return ids.length === 0 ? "" : ask("explain", { ...this.#origin, ids: ids.slice(0, 3), ...more }); }

    #nodes() { return ask("nodes", this.#origin); }

    ids(...want) {
      if (want.length === 1 && Array.isArray(want[0])) want = want[0];
      const got = this.#ids();
      if (same(want, got)) return this;
      const missing = want.filter((id) => !has(got, id)), extra = got.filter((id) => !has(want, id));
      let pair; // of rows that stand the other way round: first the one that should come first
      if (missing.length + extra.length === 0) {
        const at = got.findIndex((id, i) => !same(id, want[i]));
        if (at < want.length) pair = [want[at], got[at]];
      }
      fail("the rows differ", [
        `  expected  ${list(want)}`, `  got       ${list(got)}`, missing.length && `  missing   ${list(missing)}`, extra.length && `  too many  ${list(extra)}`,
        this.#why([...missing, ...extra, ...(pair ?? [])], { pair }),
      ]);
    }
    contains(...ids) {
      const got = this.#ids(), missing = ids.flat().filter((id) => !has(got, id));
      if (missing.length > 0) fail(`${list(missing)} should be among the rows`, [`  got  ${list(got)}`, this.#why(missing)]);
      return this;
    }
    lacks(...ids) {
      const got = this.#ids(), extra = ids.flat().filter((id) => has(got, id));
      if (extra.length > 0) fail(`${list(extra)} should not be among the rows`, [`  got  ${list(got)}`, this.#why(extra)]);
      return this;
    }
    before(a, b) {
      const got = this.#ids(), at = (id) => got.findIndex((other) => same(other, id));
      for (const id of [a, b]) if (at(id) < 0) fail(`${show(id)} should be among the rows`, [`  got  ${list(got)}`, this.#why([id])]);
      if (at(a) >= at(b)) fail(`${show(a)} should come before ${show(b)}`, [`  got  ${list(got)}`, this.#why([a, b], { pair: [a, b] })]);
      return this;
    }
    count(n) {
      const got = this.#ids();
      if (got.length !== n) fail(`there should be ${n} rows, not ${got.length}`, [`  got  ${list(got)}`, "  rows of the nodes", ...this.#nodes().map((n) => `  · ${n.name} (${n.op}): ${n.rows}`)]);
      return this;
    }
    column(name, want) {
      const got = this.#all().map((row) => row[name] ?? null);
      if (same(want, got)) return this;
      const at = got.findIndex((v, i) => !same(v, want[i] ?? null));
      fail(`the column ${name} differs`, [`  expected  ${show(want)}`, `  got       ${show(got)}`, at >= 0 && this.#why([this.#ids()[at]], { column: name })]);
    }
    row(id, want) {
      const row = this.#all().find((r) => same(r.id, id));
      if (row === undefined) return this.contains(id);
      for (const name of Object.keys(want)) {
        if (same(want[name] ?? null, row[name] ?? null)) continue;
        fail(`${name} of row ${show(id)} should be ${show(want[name])}, not ${show(row[name] ?? null)}`, [this.#why([id], { column: name })]);
      }
      return this;
    }
    every(holds, words = "the condition") {
      const row = this.#all().find((r, i) => {
        const answer = holds(r, i) ?? false;
        if (typeof answer !== "boolean") throw new TypeError(`every takes a function that answers with true or false; the columns of a row are its members, as in row.score`);
        return !answer;
      });
      if (row !== undefined) fail(`${words} should hold for every row`, [`  not for  ${show(row)}`, this.#why([row.id])]);
      return this;
    }
    sorted(name, order = "asc") {
      if (order !== "asc" && order !== "desc") throw new TypeError(`order is "asc" or "desc"`);
      const rows = this.#all();
      for (let i = 1; i < rows.length; i++) {
        const [a, b] = [rows[i - 1], rows[i]];
        if (order === "asc" ? a[name] <= b[name] : a[name] >= b[name]) continue;
        fail(`the rows should be sorted by ${name}, ${order}`, [`  ${show(a.id)} has ${show(a[name])}, and ${show(b.id)} after it has ${show(b[name])}`, this.#why([a.id, b.id], { pair: [b.id, a.id] })]);
      }
      return this;
    }
    shelf(name) {
      this.#all();
      const rows = this.#subject.outputs?.[name];
      if (rows === undefined) fail(`the answer has no shelf ${show(name)}`, [`  it has  ${this.#subject.outputs ? list(Object.keys(this.#subject.outputs)) : "candidates alone"}`]);
      return new Expectation(rows);
    }
    shelves(...names) {
      this.#all();
      const want = names.flat(), got = Object.keys(this.#subject.outputs ?? {});
      if (!same(want, got)) fail("the shelves differ", [`  expected  ${list(want)}`, `  got       ${list(got)}`]);
      return this;
    }
    complete() {
      this.#all();
      for (const [node, lack] of Object.entries(this.#subject.completeness ?? {})) {
        if (lack.status !== "ok" || lack.malformed) fail(`the answer should be complete, and node ${node} is ${lack.status}`, [`  ${show(lack)}`]);
      }
      const other = this.#subject.fallback;
      if (other) fail(`the answer should be complete, and it is of the fallback ${other.plan}`, [`  ${show(other)}`]);
      const short = Object.keys(this.#subject.below_minimum ?? {});
      if (short.length > 0) fail(`the answer should be complete, and ${short[0]} is below minimum`, [`  ${show(this.#subject.below_minimum)}`]);
      return this;
    }
    lacking(node, want = {}) {
      this.#all();
      const lack = Object.entries(this.#subject.completeness ?? {}).find(([id, l]) => id === node || l.label === node)?.[1];
      if (lack === undefined || (lack.status === "ok" && !lack.malformed)) fail(`node ${node} should lack something`, [`  completeness  ${show(this.#subject.completeness ?? {})}`]);
      for (const name of Object.keys(want)) {
        if (!same(want[name], lack[name])) fail(`${name} of node ${node} should be ${show(want[name])}, not ${show(lack[name])}`, [`  ${show(lack)}`]);
      }
      return this;
    }
    survives(...names) {
      const had = this.#all().length, known = ask("endpoints");
      for (const down of names.length > 0 ? names.flat() : known) {
        if (!known.includes(down)) throw new TypeError(`no endpoint is named ${show(down)}; there are ${list(known)}`);
        for (const slow of [false, true]) {
          const answer = sent({ ...this.#origin, out: { endpoint: down, slow } });
          const lost = (what, lines) => fail(`the answer should survive ${slow ? "a slow" : "without the"} endpoint ${down}, and ${what}`, lines);
          if (answer.error !== undefined) lost(`the request fails: ${answer.error}${answer.node ? ` (node ${answer.node}, ${answer.op})` : ""}`, [`  ${answer.detail ?? ""}`]);
          if (answer.below_minimum !== undefined) lost("is below minimum", [`  ${show(answer.below_minimum)}`, answer.fallback_failed && `  the fallback has failed  ${show(answer.fallback_failed)}`]);
          const rows = answer.candidates ?? Object.values(answer.outputs).flat();
          if (had > 0 && rows.length === 0) lost("is empty", [`  completeness  ${show(answer.completeness ?? {})}`]);
        }
      }
      return this;
    }
    equals(want) {
      if (!same(want, this.#subject)) fail("the values differ", [`  expected  ${show(want)}`, `  got       ${show(this.#subject)}`]);
      return this;
    }
    snapshot() {
      this.#all();
      const nodes = this.#nodes(); // which tell where answers went apart, and are not compared otherwise
      const value = { ...(Array.isArray(this.#subject) ? { candidates: this.#subject } : this.#subject), nodes };
      if (value.completeness) { // but for details, which name ports
        value.completeness = Object.fromEntries(Object.entries(value.completeness).map(([node, lack]) => [node, without(lack, "detail")]));
      }
      const shelves = (a) => a.outputs ?? { candidates: a.candidates };
      const { before, name } = ask("snapshot", { number: ++snapshots, value });
      if (before === null) fail(`there is no snapshot ${show(name)} yet`, ["  rankd test --update records it"]);
      const then = shelves(before), now = shelves(value);
      const at = (before.nodes ?? []).findIndex((then, i) => then.op !== nodes[i]?.op || then.rows !== nodes[i].rows);
      const [was, is] = [before.nodes?.[at], nodes[at]];
      const apart = at >= 0 && (is === undefined ? `  first apart at the end: ${was.name} (${was.op}) is gone`
        : `  first apart at ${is.name} (${is.op}): it gives ${is.rows} rows, and ${was.op === is.op ? "gave" : `in its place ${was.op} gave`} ${was.rows}`);
      const differ = (lines) => fail("the answer differs from its snapshot; rankd test --update records the new one", [apart, ...lines]);
      if (!same(Object.keys(then).sort(), Object.keys(now).sort())) differ([`  expected  ${list(Object.keys(then))}`, `  got       ${list(Object.keys(now))}`]);
      for (const shelf of Object.keys(then)) {
        try {
          const rows = new Expectation(now[shelf], { ...this.#origin, ...(shelf === "candidates" ? {} : { shelf }) }).ids(then[shelf].map((row) => row.id));
          for (const row of then[shelf]) {
            const other = now[shelf].find((r) => same(r.id, row.id));
            rows.row(row.id, { ...Object.fromEntries(Object.keys(other).map((k) => [k, null])), ...row });
          }
        } catch (e) {
          differ([`  ${e.message}${shelf === "candidates" ? "" : ` in ${shelf}`}`, e.detail]);
        }
      }
      if (!same(before.completeness, value.completeness)) differ([`  expected  ${show(before.completeness)}`, `  got       ${show(value.completeness)}`]);
      return this;
    }
  }

  const forUsers = (from, to, check) => {
    if (!Number.isInteger(from) || !Number.isInteger(to) || typeof check !== "function") throw new TypeError("forUsers takes the first and the last user and a function, as in forUsers(1, 100, (user) => { … })");
    for (let user = from; user <= to; user++) {
      about = `user ${user}: `;
      check(user);
    }
    about = "";
  };

  return {
    exports: {
      redis, rank, failure, forUsers,
      test: host.declare,
      expect: (subject) => new Expectation(subject),
      json: (value) => JSON.stringify(value),
      log: (...values) => { ask("log", values.map((v) => (typeof v === "string" ? v : show(v))).join(" ")); },
      now: (instant) => set({ now: instant }),
      service: (name, answer) => set({ services: { ...scope.services, [name]: answer } }),
      set: (members) => made("set", [...members]),
      sortedSet: (scores) => made("sorted_set", { ...scores }),
    },
    serve: (name, body) => scope.services[name](body),
    // Begins a test, or ends it and returns what it was about.
    scope: (begins) => {
      const was = about;
      about = "";
      snapshots = 0;
      if (begins) file = scope;
      else scope = file;
      return was;
    },
  };
})
