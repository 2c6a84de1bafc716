export default function () {
async function f() { return (await 1) + 1 } return typeof f() + (f() instanceof Object)
}
