export default function () {
const a = [3, 1, 2]; [a[0], a[2]] = [a[2], a[0]]; return a
}
