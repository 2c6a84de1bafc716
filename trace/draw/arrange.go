package draw

import (
	"cmp"
	"slices"
)

// cell is the place of a node on the grid of a graph. Nodes of a column do not depend on each
// other, and edges lead to a later column. Columns that do not fit side by side continue in the
// next band, as words continue on the next line.
type cell struct{ band, column, row int }

// grid is an arrangement of nodes: a cell per node, and the rows of each band.
type grid struct {
	cells []cell
	rows  []int
}

// rowsMax bounds the nodes of a column. A larger layer takes several columns.
const rowsMax = 16

// arrange puts the nodes of a DAG on a grid whose bands have at most the given number of columns.
// inputs[i] are the nodes that node i reads. A node stands in a column after those of its inputs.
func arrange(inputs [][]int, columns int) grid {
	g := grid{cells: make([]cell, len(inputs))}
	all := split(order(layers(inputs), inputs))
	for len(all) > 0 {
		band := all[:min(columns, len(all))]
		all = all[len(band):]
		rows := 0
		for _, column := range band {
			rows = max(rows, len(column))
		}
		for c, column := range band {
			for i, row := range g.near(column, inputs, len(g.rows), rows) {
				g.cells[column[i]] = cell{len(g.rows), c, row}
			}
		}
		g.rows = append(g.rows, rows)
	}
	return g
}

// layers groups nodes by the length of the longest path that leads to them.
func layers(inputs [][]int) [][]int {
	var all [][]int
	for i, d := range depths(inputs) {
		for len(all) < d {
			all = append(all, nil)
		}
		all[d-1] = append(all[d-1], i)
	}
	return slices.DeleteFunc(all, func(layer []int) bool { return len(layer) == 0 })
}

// order sorts the nodes of each layer by the mean place of their neighbors, so that fewer edges cross.
func order(layers [][]int, inputs [][]int) [][]int {
	readers := make([][]int, len(inputs))
	for i, ins := range inputs {
		for _, in := range ins {
			readers[in] = append(readers[in], i)
		}
	}
	place := make([]float64, len(inputs)) // within the layer, from 0 to 1
	number := func(layer []int) {
		for i, n := range layer {
			place[n] = (float64(i) + 0.5) / float64(len(layer))
		}
	}
	sort := func(layer []int, neighbors [][]int) {
		mean := make(map[int]float64, len(layer))
		for _, n := range layer {
			mean[n] = place[n]
			if len(neighbors[n]) > 0 {
				sum := 0.0
				for _, other := range neighbors[n] {
					sum += place[other]
				}
				mean[n] = sum / float64(len(neighbors[n]))
			}
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
		number(layer)
	}
	for _, layer := range layers {
		number(layer)
	}
	for range 4 { // more sweeps change little
		for _, layer := range layers {
			sort(layer, inputs)
		}
		for _, layer := range slices.Backward(layers) {
			sort(layer, readers)
		}
	}
	for _, layer := range layers {
		sort(layer, inputs)
	}
	return layers
}

// split cuts layers into columns of at most rowsMax nodes, of about the same length.
func split(layers [][]int) (columns [][]int) {
	for _, layer := range layers {
		parts := (len(layer) + rowsMax - 1) / rowsMax
		columns = slices.AppendSeq(columns, slices.Chunk(layer, (len(layer)+parts-1)/parts))
	}
	return columns
}

// near returns the rows of a column's nodes, each close to its inputs in the same band, and all below rows.
func (g *grid) near(column []int, inputs [][]int, band, rows int) []int {
	chosen := make([]int, len(column))
	next := 0
	for i, n := range column {
		sum, known := 0, 0
		for _, in := range inputs[n] {
			if at := g.cells[in]; at.band == band {
				sum, known = sum+at.row, known+1
			}
		}
		wish := next
		if known > 0 {
			wish = sum / known
		}
		chosen[i] = max(next, wish)
		next = chosen[i] + 1
	}
	for i := range column { // those below a node need room, too
		chosen[i] = min(chosen[i], rows-(len(column)-i))
	}
	return chosen
}
