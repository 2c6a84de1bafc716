export default function () {
throw new RangeError("deliberate")
}
