export default function () {
return [].reduce((a, b) => a + b)
}
