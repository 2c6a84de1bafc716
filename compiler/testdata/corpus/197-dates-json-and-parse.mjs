export default function () {
  const saved = JSON.stringify({ at: new Date(0), n: 1 });
  const read = JSON.parse(saved, (k, v) => (k === "at" ? new Date(v) : v));
  return [saved, read.at.getUTCFullYear(), Number.isNaN(Date.parse("no date")), Date.parse("1970-01-02T00:00:00Z")];
}
