export default function () {
const a = {}, k = []; a[k.push(1)] = k.push(2); const b = [0, 0, 0]; let i = 0; b[i++] = i++; return [a, k, b, i]
}
