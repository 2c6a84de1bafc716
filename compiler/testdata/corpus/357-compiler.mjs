export default function () {
return Object.entries({ a: 1, b: 2 }).map(([k, v]) => ({ [k + k]: v ** 2 })).reduce((a, o) => ({ ...a, ...o }), {})
}
