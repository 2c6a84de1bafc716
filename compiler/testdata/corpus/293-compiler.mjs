export default function () {
class E extends Error { constructor(m) { super(m); this.name = "E" } } try { throw new E("x") } catch (e) { return [e.name, e.message, e instanceof E, e instanceof Error, String(e)] }
}
