// show writes a plain value so that -0 and 0, undefined and null, and the order of members differ.
export function show(v) {
  if (v === null || v === undefined || typeof v === "boolean") return String(v);
  if (typeof v === "number") return Object.is(v, -0) ? "-0" : String(v);
  if (typeof v === "bigint") return v + "n";
  if (typeof v === "string") return JSON.stringify(v);
  if (typeof v !== "object") return typeof v;
  if (Array.isArray(v)) return "[" + Array.from(v, (x, i) => (i in v ? show(x) : "hole")).join(",") + "]";
  return "{" + Object.keys(v).map((k) => JSON.stringify(k) + ":" + show(v[k])).join(",") + "}";
}

// outcome is what a program does: the value that its function returns, or the kind of error that it throws.
export function outcome(run) {
  try {
    return "returns " + show(run());
  } catch (e) {
    return "throws " + (e instanceof Error ? e.name : show(e));
  }
}
