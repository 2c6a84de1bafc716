export default function () {
return [null?.x, undefined?.[0], null?.(), ({ a: null }).a?.b.c.d, (() => { try { return ({}).a.b } catch (e) { return e.name } })(), [1]?.[0], ({ f() { return this.v }, v: 3 })?.f?.()]
}
