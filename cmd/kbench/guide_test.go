package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// guides are what a newcomer reads, from the top of the project.
var guides = []string{"README.md", "workloads/README.md", "report/README.md"}

// block is a fenced block of a guide that a remark before it says how to try. The commands run in a
// folder that has the guide's files:
//
//	<!-- file: mine.yaml -->      the block is that file
//	<!-- test: plan mine.yaml --> the command succeeds and says what the block shows
//	<!-- refused: plan x -->      it is wrong usage
type block struct{ kind, of, text string }

var fences = regexp.MustCompile("(?s)<!-- (?:(test|refused): ([^\n]*?) -->\\s*```console|(file): ([^\n]*?) -->\\s*```[a-z]+)\n(.*?)```")

func blocksOf(t *testing.T, guide string) (found []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(guide)))
	require.NoError(t, err)
	for _, m := range fences.FindAllStringSubmatch(string(text), -1) {
		found = append(found, block{m[1] + m[3], m[2] + m[4], m[5]})
	}
	return found
}

// handbooks are those guides of which every command is tried.
var handbooks = []string{"workloads/README.md", "report/README.md"}

// No command stands in a handbook without a remark that has it tried.
func TestEveryCommandOfTheHandbooksIsTried(t *testing.T) {
	for _, guide := range handbooks {
		require.Contains(t, guides, guide)
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(guide)))
		require.NoError(t, err)
		tried := 0
		for _, b := range blocksOf(t, guide) {
			if b.kind != "file" {
				tried++
				require.Equal(t, 1, strings.Count(b.text, "$ "), "one command a block: %s", b.text)
			}
		}
		require.Equal(t, strings.Count(string(text), "```console"), tried, "%s: each has <!-- test: … --> or <!-- refused: … --> before it", guide)
		require.NotRegexp(t, "(?m)^```(sh|bash|shell|text)?$[^`]*^\\$ ", string(text), "a command in a block that is not tried")
	}
}

// What a guide shows is what kbench does: the first word of each line of output, where it has
// no digits, is in what the command prints.
func TestGuidesShowWhatHappens(t *testing.T) {
	t.Parallel()
	for _, guide := range guides {
		dir := t.TempDir()
		blocks := blocksOf(t, guide)
		require.NotEmpty(t, blocks, "%s has no block that is tried", guide)
		for _, b := range blocks {
			if b.kind == "file" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, b.of), []byte(b.text), 0o644))
			}
		}
		for _, b := range blocks {
			if b.kind != "file" {
				t.Run(guide+" "+b.of, func(t *testing.T) { b.happens(t, dir) })
			}
		}
	}
}

func (b block) happens(t *testing.T, dir string) {
	given := strings.Fields(strings.ReplaceAll(b.of, "'", ""))
	command, shown, _ := strings.Cut(b.text, "\n")
	require.Contains(t, command, "$ ")
	require.True(t, strings.HasSuffix(command, b.of), "the remark is what the block shows: %s", command)
	code := codeDone
	switch {
	case b.kind == "refused":
		code = codeUsage
	case given[0] == "run":
		given = args(given, brief)
	case slices.Contains(perfCommands, given[0]):
		given = args(given, carefree)
	}
	e := kbenchIn(t, dir, given...)
	e.requireCode(t, code)
	words := 0
	for line := range strings.Lines(shown) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.ContainsAny(word, "0123456789#") {
			continue
		}
		require.Contains(t, e.out+e.err, word)
		words++
	}
	require.Positive(t, words)
}
