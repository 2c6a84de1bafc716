export default function () {
  const kept = [];
  outer: for (let i = 0; i < 4; i++) {
    let skipped = 0;
    for (let j = 0; j < 4; j++) {
      if ((i + j) % 3 === 0) { skipped++; continue; }
      if (j > i) { kept.push(() => `${i}/${j}/${skipped}`); continue outer; }
      if (i === 3) { kept.push(() => "last " + i); break outer; }
    }
  }
  return kept.map((f) => f());
}
