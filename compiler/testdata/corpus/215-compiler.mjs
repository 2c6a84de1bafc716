export default function () {
let calls = 0; const f = () => { calls++; return true }; false && f(); true || f(); 1 ?? f(); true && f(); return calls
}
