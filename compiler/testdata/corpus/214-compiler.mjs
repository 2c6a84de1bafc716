export default function () {
let calls = 0; const o = { v: 0 }; (() => o)().v ||= ++calls; (() => o)().v &&= (calls++, 9); (() => o)().v ??= calls++; return [calls, o]
}
