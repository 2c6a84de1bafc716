export default function () {
let calls = 0; const o = { v: 1 }; const get = () => { calls++; return o }; get().v += 2; get()["v"] *= 2; return [calls, o]
}
