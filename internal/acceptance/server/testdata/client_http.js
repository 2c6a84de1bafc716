// Node's own client: fetch with connections that stay, many requests at a time, and a batch as a stream.
const base = `http://127.0.0.1:${process.argv[2]}`;
const rank = async (user) => {
  const response = await fetch(`${base}/v1/rank/simple_viewer`, { method: "POST", body: JSON.stringify({ user_id: user }) });
  const answer = await response.json();
  if (response.status !== 200 || answer.candidates[0].id !== user) throw new Error(JSON.stringify(answer));
};
(async () => {
  for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 50 }, (_, i) => rank(i + 1)));
  const lines = Array.from({ length: 100 }, (_, i) => `{"user_id": ${i + 1}, "plan": "simple_viewer"}\n`);
  const body = new ReadableStream({
    async pull(controller) {
      if (lines.length === 0) return controller.close();
      controller.enqueue(new TextEncoder().encode(lines.shift()));
    },
  });
  const response = await fetch(`${base}/v1/batch`, { method: "POST", body, duplex: "half" });
  const ids = (await response.text()).trim().split("\n").map((line) => JSON.parse(line).candidates[0].id);
  if (ids.some((id, i) => id !== i + 1) || ids.length !== 100) throw new Error(ids.join());
  if ((await fetch(`${base}/v1/rank/nowhere`, { method: "POST", body: '{"user_id": 1}' })).status !== 404) throw new Error("no refusal");
  console.log("ok");
})().catch((error) => { console.error(error); process.exit(1); });
