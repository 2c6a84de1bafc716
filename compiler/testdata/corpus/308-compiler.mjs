export default function () {
const o = Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true }, hidden: { value: 3 } }); const keys = []; for (const k in o) keys.push(k); return [keys, Object.keys(o), o.hidden, Object.getOwnPropertyNames(o)]
}
