export default function () {
const e = new Error("m", { cause: 5 }); return [e.cause, e.message, Object.keys(e), e instanceof Error, new TypeError("t").toString()]
}
