// Cuts a text into words and numbers, with a label on a while loop.
function cut(text) {
  const out = [];
  let at = 0;
  next: while (at < text.length) {
    const c = text[at];
    switch (true) {
      case c === " ": at++; continue next;
      case c >= "0" && c <= "9": {
        let n = 0;
        while (at < text.length && text[at] >= "0" && text[at] <= "9") n = n * 10 + Number(text[at++]);
        out.push(n);
        continue next;
      }
      case c === "#": break next;
      default:
        let word = "";
        do { word += text[at++]; } while (at < text.length && text[at] !== " " && text[at] !== "#");
        out.push(word);
    }
  }
  return [out, at];
}
export default function () {
  return [cut("take 5 of 12 # all"), cut(""), cut("#"), cut("a1 1a")];
}
