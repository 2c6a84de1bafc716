export default function () {
label: { if (1 + 1 == 2) break label; return 1 } return 2
}
