function grade(points) {
  let text = "none";
  check: {
    if (points === undefined) break check;
    text = "bad";
    if (points < 50) break check;
    text = "good";
    inner: { if (points < 90) break inner; text = "best"; break check; }
    text += "!";
  }
  return text;
}
export default function () {
  let seen = "";
  const label = 5;
  label: for (const x of [1, 2]) { seen += x + label; continue label; }
  yes: if (label > 4) { seen += "a"; break yes; seen += "never"; } else seen += "b";
  return [grade(), grade(10), grade(60), grade(95), seen];
}
