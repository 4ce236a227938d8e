package settings

import "strings"

// Nearest is the key among those given that key was most likely meant to be: the same name in
// another section, a name that contains it, or one a few letters away. Upper and lower case
// count as the same letter. It is empty when nothing is near.
func Nearest(key string, among []string) string {
	best, bestScore := "", 1<<30
	for _, candidate := range among {
		if score := distanceScore(strings.ToLower(key), strings.ToLower(candidate)); score < bestScore {
			best, bestScore = candidate, score
		}
	}
	if bestScore >= notNear {
		return ""
	}
	return best
}

const notNear = 1000

// distanceScore orders candidates: lower is nearer, notNear and above is not near at all.
func distanceScore(key, candidate string) int {
	const longest = 100 // letters; nothing longer is a mistyped key
	if len(key) == 0 || len(key) > longest || len(candidate) > longest {
		return notNear
	}
	whole := editDistance(key, candidate)
	score := notNear
	if whole <= max(1, len(key)/3) && whole < len(key) {
		score = 10 * whole
	}
	keyParts, parts := strings.Split(key, "."), strings.Split(candidate, ".")
	last, end := keyParts[len(keyParts)-1], parts[len(parts)-1]
	if len(last) < 3 {
		return score
	}
	switch name := editDistance(last, end); {
	case name <= 1:
		score = min(score, 15+5*name+whole/4)
	case len(last) >= 4 && strings.Contains(end, last):
		score = min(score, 25+whole/2)
	}
	return score
}

// editDistance counts insertions, deletions, substitutions and swaps of neighbours
// (optimal string alignment), over bytes.
func editDistance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
