package errtext

// Nearest returns the one of names that takes the fewest edits to become name. An edit inserts, removes or replaces a
// byte. Among several, it returns the one with the longest common beginning, and among these the first. It returns
// false if there are no names.
func Nearest(name string, names []string) (near string, found bool) {
	least := 0
	for _, candidate := range names {
		if found && abs(len(candidate)-len(name)) > least {
			continue // it takes more edits
		}
		d := edits(name, candidate)
		if !found || d < least || d == least && common(name, candidate) > common(name, near) {
			near, least, found = candidate, d, true
		}
	}
	return near, found
}

// NearestWithin is Nearest for typing mistakes: it returns false if the nearest name takes more than most edits, or
// no edit.
func NearestWithin(most int, name string, names []string) (near string, found bool) {
	for _, candidate := range names {
		if name == candidate {
			return "", false
		}
		if abs(len(candidate)-len(name)) > most {
			continue
		}
		if d := edits(name, candidate); d <= most && (!found || d < edits(name, near)) {
			near, found = candidate, true
		}
	}
	return near, found
}

// NearestLike is Nearest for a name that was meant: it returns false unless the nearest name begins with the same byte, or takes at most as many
// edits as half of name has bytes.
func NearestLike(name string, names []string) (near string, found bool) {
	near, found = Nearest(name, names)
	return near, found && (common(near, name) > 0 || edits(near, name) <= len(name)/2)
}

// common returns how many bytes at their beginnings a and b share.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// edits returns the Levenshtein distance of a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: from a[:i] to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0] // of the previous row
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func abs(n int) int { return max(n, -n) }
