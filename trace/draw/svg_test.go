package draw

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/tracetest"
)

// TestPictures draws the fixtures.
func TestPictures(t *testing.T) {
	for name, tr := range fixtures(t) {
		for kind, drawing := range map[string]string{"graph": Graph(tr), "timeline": Timeline(tr)} {
			wellFormed(t, drawing)
			isStored(t, name+"."+kind+".svg", drawing)
		}
	}
}

// wellFormed checks that a drawing is XML without scripts, and returns its texts.
func wellFormed(t *testing.T, drawing string) (texts []string) {
	d := xml.NewDecoder(strings.NewReader(drawing))
	inText := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return texts
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
			assert.Contains(t, []string{"svg", "g", "rect", "path", "line", "text", "style"}, token.Name.Local)
			for _, a := range token.Attr {
				assert.False(t, strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href", a.Name.Local)
				for _, bad := range []string{"NaN", "Inf", "%!"} {
					assert.NotContains(t, a.Value, bad)
				}
			}
		case xml.CharData:
			if inText && strings.TrimSpace(string(token)) != "" {
				texts = append(texts, string(token))
			}
		}
	}
}

func TestPicturesOfHostileTraces(t *testing.T) {
	for name, tr := range tracetest.Hostile() {
		t.Run(name, func(t *testing.T) {
			wellFormed(t, Timeline(tr))
			texts := wellFormed(t, Graph(tr))
			assert.LessOrEqual(t, len(texts), 6*len(tr.Nodes))
		})
	}
}

// Each node has its own box. The box is to the right of those that the node reads, or in a
// later band.
func TestArrange(t *testing.T) {
	for name, tr := range tracetest.Hostile() {
		for _, columns := range []int{1, 6, 8} {
			inputs := make([][]int, len(tr.Nodes))
			for i := range tr.Nodes {
				inputs[i] = tr.Nodes[i].Inputs
			}
			g := arrange(inputs, columns)
			taken := make(map[cell]int)
			for i, at := range g.cells {
				other, twice := taken[at]
				assert.False(t, twice, "%s: nodes %d and %d are at the same place", name, i, other)
				taken[at] = i
				assert.True(t, 0 <= at.row && at.row < g.rows[at.band] && at.row < rowsMax && 0 <= at.column && at.column < columns, "%s: node %d at %v", name, i, at)
				for _, in := range inputs[i] {
					before := g.cells[in]
					assert.True(t, before.band < at.band || before.band == at.band && before.column < at.column, "%s: node %d at %v reads node %d at %v", name, i, at, in, before)
				}
			}
		}
	}
}

// Texts of a graph are within their boxes, and do not overlap.
func TestTextsFit(t *testing.T) {
	tr := tracetest.Hostile()["names"]
	for _, drawing := range []string{newScene(tr).graph(), newScene(tracetest.Random(1, 100)).graph()} {
		size := roomy.size
		room := roomy.boxWidth
		if strings.Contains(drawing, "compact") {
			size, room = compact.size, compact.boxWidth
		}
		texts := wellFormed(t, drawing)
		for k := 0; k+1 < len(texts); k += 2 {
			assert.LessOrEqual(t, textWidth(texts[k]+" "+texts[k+1], size), room, "%q %q", texts[k], texts[k+1])
		}
	}
}

func TestTicks(t *testing.T) {
	for _, total := range []int64{1, 7, 999, 34_052_000, 1e9, 3600e9 * 50} {
		all := ticks(time.Duration(total))
		assert.Zero(t, all[0])
		assert.LessOrEqual(t, len(all), 12, total)
	}
}

// TestTheGraphSaysWhatANodeMayFailFor: the drawing alone, and the page.
func TestTheGraphSaysWhatANodeMayFailFor(t *testing.T) {
	tr := tracetest.Random(1, 3)
	tr.Nodes[0].OnError, tr.Nodes[0].Because = "partial", "only the rows whose keys fail are lost"
	tr.Nodes[1].Because = "it may <drop> rows"
	tr.Nodes[2].OnError = "skip"
	want := []string{"onError: partial: only the rows whose keys fail are lost", "onError: fail: it may &lt;drop&gt; rows", "onError: skip"}
	for _, says := range want {
		assert.Equal(t, 1, strings.Count(Graph(tr), "<title>"+says+"</title>"), says)
	}
	var page strings.Builder
	require.NoError(t, HTML(&page, Run{Trace: tr}))
	assert.Contains(t, page.String(), `"Fails":"onError: partial: only the rows whose keys fail are lost"`)
}
