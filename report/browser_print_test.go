//go:build browser

package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	printing "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// onPaper shows a page as it is printed, in the colour scheme of a dark screen.
func (b *browser) onPaper(path string) {
	b.t.Helper()
	b.show(path, 720, "dark") // Letter and A4 are about as wide between their margins
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print",
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	require.NoError(b.t, err)
}

// print prints the page, and keeps the paper like a screenshot.
func (b *browser) print(name string) []byte {
	b.t.Helper()
	printed, err := chromedp.Call(b.ctx, printing.PrintToPDF, printing.PrintToPDFParams{})
	require.NoError(b.t, err)
	if folder := os.Getenv(screenshots); folder != "" {
		require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".pdf"), printed.Data, 0o644))
	}
	return printed.Data
}

const (
	// shutAway is what a reader of paper does not see although it is no table of numbers.
	shutAway = `[...document.querySelectorAll("main details:not(.numbers) > *:not(summary), main .chart:not(.narrow)")]
		.filter(e => !e.checkVisibility({visibilityProperty: true})).length`
	openNow = `[...document.querySelectorAll("details")].map(e => e.open)`
	clipped = `[...document.querySelectorAll("main svg.chart, main table, main pre")].filter(e => e.checkVisibility() &&
		(e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < 0)).map(e => e.getAttribute("class") + " in " + e.closest("section").id + ": " + e.getBoundingClientRect().right)`
)

// What is closed on the screen is open on paper, and afterwards as it was.
func TestBrowserPrint(t *testing.T) {
	for name, f := range map[string]fixture{"sweep": sweep(t, 3), "open": openStall(t), "capacity": capacityResult(t)} {
		t.Run(name, func(t *testing.T) {
			path := written(t, f)
			b := openBrowser(t)
			b.onPaper(path)
			eval[chromedp.Void](b, `window.seen = []; for (const name of ["beforeprint", "afterprint"])
				addEventListener(name, () => seen.push([name, document.querySelectorAll("details:not(.numbers):not([open])").length]));
				document.querySelector(".source details").open = true;`)
			before := eval[[]bool](b, openNow)
			require.Contains(t, before, true, "what the reader opened stays open")
			require.Contains(t, before, false)
			paper := b.print("paper-" + name)
			require.True(t, bytes.HasPrefix(paper, []byte("%PDF-")))
			require.Greater(t, len(paper), 50_000, "all of it is on paper")
			require.Equal(t, "beforeprint 0, afterprint "+eval[string](b, `String(document.querySelectorAll("details:not(.numbers):not([open])").length)`),
				eval[string](b, `seen.map(s => s.join(" ")).join(", ")`), "all is open while it prints")
			require.Equal(t, before, eval[[]bool](b, openNow), "as it was")

			eval[chromedp.Void](b, `dispatchEvent(new Event("beforeprint"))`)
			require.Zero(t, eval[int](b, shutAway))
			require.Empty(t, eval[[]string](b, clipped), "nothing runs out of the paper")
			require.Zero(t, eval[int](b, `[...document.querySelectorAll("details.numbers")].filter(e => e.getBoundingClientRect().height).length`))
			require.Equal(t, "rgb(255, 255, 255)", eval[string](b, `getComputedStyle(document.body).backgroundColor`), "paper is white, whatever the screen is")
			require.GreaterOrEqual(t, eval[float64](b, luminance), 4.5)
			eval[chromedp.Void](b, `dispatchEvent(new Event("afterprint"))`)
			require.Equal(t, before, eval[[]bool](b, openNow))
			b.quiet(path)
		})
	}
}

// Paper does not need the script: the style sheet opens what it can.
func TestBrowserPrintWithoutScript(t *testing.T) {
	b, path := openedWithoutScript(t, sweep(t, 1))
	require.NotZero(t, eval[int](b, shutAway), "closed on the screen")
	b.onPaper(path)
	require.NotContains(t, eval[[]bool](b, openNow), true)
	require.Zero(t, eval[int](b, shutAway))
}
