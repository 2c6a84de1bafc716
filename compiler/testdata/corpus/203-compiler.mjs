export default function () {
return 2 ** 3 ** 2 + (-2) ** 2
}
