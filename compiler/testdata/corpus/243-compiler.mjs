export default function () {
return 1 ? 2 ? 3 : 4 : 5
}
