package draw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/internal/testing/tracetest"
	"github.com/rankd/rankd/trace"
)

func render(t *testing.T, runs ...Run) string {
	var out bytes.Buffer
	require.NoError(t, HTML(&out, runs...))
	return out.String()
}

func TestThePageSaysWhatBoundsTheRequest(t *testing.T) {
	text := html.UnescapeString(render(t, Run{Trace: fixtures(t)["mixed_pipeline.reactor"]}))
	for _, want := range []string{
		"mixed_pipeline took 34.1 ms on the reactor (adaptive).", "n1 (core::follow) bounds the request: 15 ms, 44 % of it, of which 14.9 ms waiting for Redis.",
		"n0 viewer → n1 follow → n2 vm → n3 filter → n4 sort → n5 take", "fused into n2", "100→60", ">ep_0001 #0<", ">CPU 1<",
	} {
		assert.Contains(t, text, want)
	}
}

func TestThePageNeedsNothingElse(t *testing.T) {
	page := render(t, Run{Trace: tracetest.Random(1, 9)})
	assert.NotRegexp(t, `(?i)<(script|img|iframe)[^>]*\ssrc=|<link|@import|url\(`, page)
	assert.Regexp(t, `</html>\s*$`, page)
}

// Names of plans, nodes and tracks are texts, whatever they contain.
func TestNamesAreEscaped(t *testing.T) {
	for name, tr := range tracetest.Hostile() {
		t.Run(name, func(t *testing.T) {
			page := render(t, Run{Name: "<b>x</b>", Trace: tr})
			for _, mark := range []string{"<script>alert", "<img", "<b>x", "<i>Loop", "<u>", "--><!--"} {
				assert.NotContains(t, page, mark)
			}
			assert.Equal(t, 1, strings.Count(page, "</title>"))
			data := regexp.MustCompile(`(?s)<script type="application/json" class="nodes">(.*?)</script>`).FindStringSubmatch(page)
			require.NotNil(t, data)
			var nodes []node
			require.NoError(t, json.Unmarshal([]byte(data[1]), &nodes))
			assert.Len(t, nodes, len(tr.Nodes))
		})
	}
}

// Wherever the page shows a long error, it shows an excerpt.
func TestErrorsAreCut(t *testing.T) {
	tr := tracetest.Random(3, 5)
	tr.Nodes[2].Status, tr.Nodes[2].Error = trace.Failed, "first "+strings.Repeat("x", 10_000)
	page := render(t, Run{Trace: tr})
	assert.Contains(t, page, "first "+strings.Repeat("x", 100))
	assert.NotContains(t, page, strings.Repeat("x", 200))
}

// probe is a script that a test adds to a page. It uses the page as a reader does, and writes
// down what it finds.
const probe = `<script>
document.body.getBoundingClientRect(); // lays the page out
const found = { took: Math.round(performance.now()), wide: document.documentElement.scrollWidth - innerWidth, overlaps: [], outside: [] };
function texts(svg) { return [...svg.querySelectorAll('text')].map((e) => ({ e, r: e.getBoundingClientRect() })).filter((t) => t.r.width > 0); }
for (const svg of document.querySelectorAll('.drawing')) {
  const all = texts(svg).sort((a, b) => a.r.left - b.r.left), box = svg.getBoundingClientRect();
  all.forEach((a, i) => {
    if (a.r.left < box.left - 1 || a.r.right > box.right + 1 || a.r.top < box.top - 1 || a.r.bottom > box.bottom + 2) found.outside.push(a.e.textContent);
    for (let k = i + 1; k < all.length && all[k].r.left < a.r.right - 1; k++) {
      const b = all[k];
      if (Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top) > 3) found.overlaps.push(a.e.textContent + ' | ' + b.e.textContent);
    }
  });
}
const node = document.querySelector('.node');
if (node) {
  node.dispatchEvent(new MouseEvent('mouseover', { bubbles: true, clientX: 300, clientY: 200 }));
  found.tip = tip.textContent; found.tipHidden = tip.hidden; found.near = document.querySelectorAll('.node.near').length;
  document.body.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
  found.tipGone = tip.hidden && !document.querySelector('.near');
}
document.querySelector('[data-zoom="0.5"]').click();
found.zoomed = document.querySelector('.plot').getAttribute('viewBox');
document.querySelector('[data-zoom="0"]').click();
found.whole = document.querySelector('.plot').getAttribute('viewBox');
document.querySelectorAll('details').forEach((d) => { d.open = true; d.dispatchEvent(new Event('toggle')); });
found.rows = document.querySelectorAll('tbody tr').length;
found.wide = Math.max(found.wide, document.documentElement.scrollWidth - innerWidth);
document.body.dataset.found = JSON.stringify(found);
</script></body>`

// found is what the probe writes down.
type found struct {
	Took              int // ms from the beginning of the load to the end of the layout
	Wide, Rows        int
	Overlaps, Outside []string
	Tip               string
	TipHidden         bool
	TipGone           bool
	Near              int
	Zoomed, Whole     string
}

// TestInChromium opens pages with 5, 50 and 500 nodes, and hostile ones. RANKD_SCREENSHOT names
// a folder for pictures of them. The test logs the time that a page took, but does not check
// it, since the machine may be busy.
func TestInChromium(t *testing.T) {
	b := testworld.NewBrowser(t)
	pages := map[string]string{"compare": render(t, Run{Name: "offload_all", Trace: tracetest.Random(5, 12)}, Run{Name: "adaptive", Trace: tracetest.Random(6, 12)})}
	for _, n := range []int{5, 50, 500} {
		pages[fmt.Sprintf("nodes_%d", n)] = render(t, Run{Trace: tracetest.Random(3, n)})
	}
	hostile := tracetest.Hostile()
	for _, name := range []string{"names", "fan", "skipped"} {
		pages[name] = render(t, Run{Trace: hostile[name]})
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name+".html")
			require.NoError(t, os.WriteFile(file, []byte(strings.Replace(page, "</body>", probe, 1)), 0o644))
			body := html.UnescapeString(regexp.MustCompile(`<body[^>]*>`).FindString(b.DOM(file)))
			assert.NotContains(t, body, "data-error")
			data := regexp.MustCompile(`data-found="(.*)"`).FindStringSubmatch(body)
			require.NotNil(t, data, body)
			var f found
			require.NoError(t, json.Unmarshal([]byte(data[1]), &f))
			t.Logf("%d kB, rendered in %d ms", len(page)/1000, f.Took)
			assert.LessOrEqual(t, f.Wide, 0, "the page scrolls sideways")
			assert.Empty(t, f.Overlaps, "texts overlap")
			assert.Empty(t, f.Outside, "texts leave their drawing")
			assert.True(t, f.Tip != "" && !f.TipHidden && f.Near == 1, "hover: %+v", f)
			assert.True(t, f.TipGone)
			assert.NotEqual(t, f.Whole, f.Zoomed)
			assert.Equal(t, strings.Count(page, `<g class="node `), f.Rows, "the table has a row per node")
			if folder := os.Getenv("RANKD_SCREENSHOT"); folder != "" {
				plain := filepath.Join(t.TempDir(), name+".html")
				require.NoError(t, os.WriteFile(plain, []byte(page), 0o644))
				for _, dark := range []bool{false, true} {
					shot := testworld.NewBrowser(t)
					shot.Dark = dark
					shot.Screenshot(plain, filepath.Join(folder, fmt.Sprintf("%s.dark=%t.png", name, dark)))
				}
			}
		})
	}
}
