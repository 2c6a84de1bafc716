export default function () {
const mixin = (Base) => class extends Base { m() { return "m" + (super.m?.() ?? "") } }; class X { m() { return "x" } } return new (mixin(mixin(X)))().m()
}
