package gbdt

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small returns a model of one tree with three nodes: a split and its leaves.
func small() *document {
	d := randomModel(rand.New(rand.NewPCG(0, 0)), shape{features: 2})
	tree := jsonTree{Left: []int{1, -1, -1}, Right: []int{2, -1, -1}, Features: []int{1, 0, 0}, Conditions: []float32{0.5, 10, 20},
		DefaultLeft: []int{1, 0, 0}, Kinds: []int{0, 0, 0}}
	tree.Param.Nodes, tree.Param.LeafSize = "3", "1"
	d.Learner.Booster.Model.TreeInfo, d.Learner.Booster.Model.Trees = []int{0}, []jsonTree{tree}
	return d
}

func predictions(t *testing.T, text []byte, rows ...[]float32) []float64 {
	m, err := Read(text)
	require.NoError(t, err)
	out := make([]float64, len(rows))
	require.True(t, m.Predict(nil, columnsOf(rows, m.Features()), Prediction, out))
	return out
}

func TestReadTheFormatsOfAllVersions(t *testing.T) {
	rows := [][]float32{{0, 0.4}, {0, 0.5}, {0, nan}}
	for name, edit := range map[string]func(text string) string{
		"1.7":                       func(text string) string { return text },
		"3.1: base_score is a list": func(text string) string { return strings.Replace(text, `"5E-1"`, `"[5E-1]"`, 1) },
		"default_left as booleans": func(text string) string {
			return strings.Replace(text, `"default_left":[1,0,0]`, `"default_left":[true,false,false]`, 1)
		},
		"no split_type": func(text string) string { return strings.Replace(text, `"split_type":[0,0,0]`, `"split_type":[]`, 1) },
		"unknown members": func(text string) string {
			return strings.Replace(text, `{"learner":{`, `{"x":{"a":[1,{}]},"learner":{"cats":{"enc":[]},`, 1)
		},
		"NaN where nobody looks": func(text string) string {
			return strings.Replace(text, `{"learner":{`, `{"learner":{"x":[NaN,Infinity,-Infinity,"\\\"NaN"],`, 1)
		},
		"base_score is a number": func(text string) string { return strings.Replace(text, `"5E-1"`, `0.5`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			before := string(small().text(t))
			text := edit(before)
			if name != "1.7" {
				require.NotEqual(t, before, text)
			}
			assert.Equal(t, []float64{10.5, 20.5, 10.5}, predictions(t, []byte(text), rows...))
		})
	}
}

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		objective, base string
		leaf            float32
		want            float64
	}{
		{"reg:squarederror", "2", 1.5, 3.5},
		{"binary:logistic", "5E-1", 2, 1 / (1 + math.Exp(-2))},
		{"binary:logistic", "5E-1", -200, 1 / (1 + math.Exp(200))},
		{"binary:logistic", "2.5E-1", 0, 0.25},
		{"binary:logitraw", "2.5E-1", 1, 1.25},
		{"rank:ndcg", "5E-1", 1, 1.5},
		{"count:poisson", "5E-1", 1, 0.5 * math.E},
	} {
		d := small()
		d.Learner.Objective.Name, d.Learner.Params.BaseScore = c.objective, c.base
		tree := &d.Learner.Booster.Model.Trees[0]
		tree.Conditions[1], tree.Conditions[2] = c.leaf, c.leaf
		assert.InDelta(t, c.want, predictions(t, d.text(t), []float32{0, 0})[0], 1e-6*max(1, math.Abs(c.want)), c.objective)
	}
}

// Pruning leaves nodes that no row reaches. Their content does not matter.
func TestUnreachableNodes(t *testing.T) {
	d := small()
	tree := &d.Learner.Booster.Model.Trees[0]
	tree.Left, tree.Right = append(tree.Left, -1), append(tree.Right, -1)
	tree.Features, tree.Conditions = append(tree.Features, math.MaxInt32), append(tree.Conditions, 7)
	tree.DefaultLeft, tree.Kinds = append(tree.DefaultLeft, 0), append(tree.Kinds, 1)
	tree.Param.Nodes = "4"
	assert.Equal(t, []float64{10.5}, predictions(t, d.text(t), []float32{0, 0}))
}

func TestReadRefuses(t *testing.T) {
	const inTrees = "learner.gradient_booster.model.trees[0]."
	tree := func(edit func(tree *jsonTree)) func(*document) {
		return func(d *document) { edit(&d.Learner.Booster.Model.Trees[0]) }
	}
	for name, c := range map[string]struct {
		edit func(d *document)
		want string
	}{
		"a cycle":          {tree(func(p *jsonTree) { p.Left[0] = 0 }), inTrees + "left_children[0]: node 0 is reached twice: the nodes do not form a tree"},
		"a shared child":   {tree(func(p *jsonTree) { p.Right[0] = 1 }), inTrees + "right_children[0]: node 1 is reached twice: the nodes do not form a tree"},
		"a child too high": {tree(func(p *jsonTree) { p.Right[0] = 3 }), inTrees + "right_children[0]: is 3, must be from 0 to 2"},
		"a left child beside a negative right one": {tree(func(p *jsonTree) { p.Right[0] = -7 }), inTrees + "right_children[0]: is -7, must be from 0 to 2"},
		"a right child alone":                      {tree(func(p *jsonTree) { p.Left[0] = -1 }), inTrees + "right_children[0]: is 2, must be -1 as left_children[0] is"},
		"a right child beside a negative left one": {tree(func(p *jsonTree) { p.Left[0] = -2 }), inTrees + "left_children[0]: is -2, must be -1 or a node"},
		"two negative children":                    {tree(func(p *jsonTree) { p.Left[0], p.Right[0] = -2, -2 }), inTrees + "left_children[0]: is -2, must be -1 or a node"},
		"a leaf with a negative right child":       {tree(func(p *jsonTree) { p.Right[1] = math.MinInt32 }), inTrees + "right_children[1]: is -2147483648, must be -1 as left_children[1] is"},
		"one child":                                {tree(func(p *jsonTree) { p.Right[0] = -1 }), inTrees + "right_children[0]: is -1, must be from 0 to 2"},
		"a feature too high":                       {tree(func(p *jsonTree) { p.Features[0] = 2 }), inTrees + "split_indices[0]: is 2, must be below num_feature, 2"},
		"a negative feature":                       {tree(func(p *jsonTree) { p.Features[0] = -1 }), inTrees + "split_indices[0]: is -1, must be from 0 to 65535"},
		"a categorical split": {tree(func(p *jsonTree) { p.Kinds[0] = 1 }),
			inTrees + "split_type[0]: is 1, and categories_nodes lacks the node: must be 1 with categories, or 0"},
		"a split of another kind": {tree(func(p *jsonTree) { p.Kinds[0] = 2 }),
			inTrees + "split_type[0]: is 2, and categories_nodes lacks the node: must be 1 with categories, or 0"},
		"categories of no node": {tree(func(p *jsonTree) { p.categories(3, 1) }), inTrees + "categories_nodes[0]: is 3, must be another node from 0 to 2"},
		"categories twice": {tree(func(p *jsonTree) { p.categories(0, 1); p.categories(0, 1) }),
			inTrees + "categories_nodes[1]: is 0, must be another node from 0 to 2"},
		"categories behind the list": {tree(func(p *jsonTree) { p.categories(0, 1, 2); p.Sizes[0] = 3 }),
			inTrees + "categories_segments[0]: 3 categories from 0 on are not in the list of 2"},
		"a negative category": {tree(func(p *jsonTree) { p.categories(0, -1) }), inTrees + "categories[0]: is -1, must be from 0 to 65535"},
		"a category too high": {tree(func(p *jsonTree) { p.categories(0, MaxCategories) }), inTrees + "categories[0]: is 65536, must be from 0 to 65535"},
		"segments without sizes": {tree(func(p *jsonTree) { p.categories(0, 1); p.Sizes = []int{} }),
			inTrees + "categories_segments: has 1 elements and categories_sizes 0, categories_nodes has 1"},
		"short covers":  {tree(func(p *jsonTree) { p.Covers = []float32{1} }), inTrees + "sum_hessian: has 1 elements, left_children has 3"},
		"a short list":  {tree(func(p *jsonTree) { p.DefaultLeft = p.DefaultLeft[:2] }), inTrees + "default_left: has 2 elements, left_children has 3"},
		"short kinds":   {tree(func(p *jsonTree) { p.Kinds = p.Kinds[:1] }), inTrees + "split_type: has 1 elements, left_children has 3"},
		"no node":       {tree(func(p *jsonTree) { p.Left = []int{} }), inTrees + "left_children: is missing or empty"},
		"other nodes":   {tree(func(p *jsonTree) { p.Param.Nodes = "5" }), inTrees + "left_children: has 3 nodes, num_nodes is 5"},
		"vector leaves": {tree(func(p *jsonTree) { p.Param.LeafSize = "3" }), inTrees + "tree_param.size_leaf_vector: is 3: models of several outputs are not supported"},
		"a bad default": {tree(func(p *jsonTree) { p.DefaultLeft[2] = 2 }), inTrees + "default_left[2]: must be 0, 1, true or false"},
		"classes": {func(d *document) { d.Learner.Params.Classes = "3"; d.Learner.Objective.Name = "multi:softprob" },
			`learner.objective.name: "multi:softprob" has 3 classes: models of several classes are not supported`},
		"a class":                      {func(d *document) { d.Learner.Booster.Model.TreeInfo[0] = 2 }, "learner.gradient_booster.model.tree_info[0]: is 2: models of several classes or outputs are not supported"},
		"targets":                      {func(d *document) { d.Learner.Params.Targets = "2" }, "learner.learner_model_param.num_target: is 2: models of several outputs are not supported"},
		"base scores":                  {func(d *document) { d.Learner.Params.BaseScore = "[1E-1,2E-1]" }, "learner.learner_model_param.base_score: has 2 values, must have one"},
		"no base score":                {func(d *document) { d.Learner.Params.BaseScore = "" }, `learner.learner_model_param.base_score: must be a number in the range of float32, or one in brackets, not ""`},
		"an empty list of base scores": {func(d *document) { d.Learner.Params.BaseScore = "[]" }, `learner.learner_model_param.base_score: must be a number in the range of float32, or one in brackets, not "[]"`},
		"an infinite base score": {func(d *document) { d.Learner.Params.BaseScore = "inf" },
			`learner.learner_model_param.base_score: must be a number in the range of float32, or one in brackets, not "inf"`},
		"a base score that is no probability": {func(d *document) { d.Learner.Params.BaseScore, d.Learner.Objective.Name = "1E0", "binary:logistic" },
			"learner.learner_model_param.base_score: 1 is not a prediction of binary:logistic"},
		"dart":              {func(d *document) { d.Learner.Booster.Name = "dart" }, `learner.gradient_booster.name: is "dart", must be "gbtree"`},
		"an objective":      {func(d *document) { d.Learner.Objective.Name = "survival:cox" }, `learner.objective.name: objective "survival:cox" is not supported`},
		"no features":       {func(d *document) { d.Learner.Params.Features = "0" }, "learner.learner_model_param.num_feature: is 0, must be from 1 to 65536"},
		"too many features": {func(d *document) { d.Learner.Params.Features = "65537" }, "learner.learner_model_param.num_feature: is 65537, must be from 1 to 65536"},
		"negative features": {func(d *document) { d.Learner.Params.Features = "-2" }, `learner.learner_model_param.num_feature: must be an integer that is not negative, not "-2"`},
		"too few names":     {func(d *document) { d.Learner.FeatureNames = []string{"a"} }, "learner.feature_names: has 1 names, num_feature is 2"},
	} {
		t.Run(name, func(t *testing.T) {
			d := small()
			c.edit(d)
			_, err := Read(d.text(t))
			require.EqualError(t, err, c.want)
		})
	}
}

func TestReadRefusesTexts(t *testing.T) {
	sound := string(small().text(t))
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {"\ufeff \n", "the file is empty"},
		"binary":       {"binf\x00", "the file is binary, as XGBoost's old format"},
		"not JSON":     {`{"a":?}`, "byte 5: the text is not JSON"},
		"a page":       {"<html>", `the file is no model: XGBoost's JSON begins with "{"`},
		"UBJSON":       {"{L\x00\x00", `the file is UBJSON; save the model with a name that ends in ".json"`},
		"cut off":      {sound[:200], "byte 200: the file ends in the middle of the model: it is cut off, or still being written"},
		"an array":     {"[]", "the file is no model"},
		"no learner":   {"{}", `learner.gradient_booster.name: is "", must be "gbtree"`},
		"more":         {sound + "1", fmt.Sprintf("data after the document, which ends at byte %d", len(sound))},
		"rubbish":      {sound + " rubbish", "data after the document"},
		"a bracket":    {sound + "]", "data after the document"},
		"a brace":      {sound + "\n}", "data after the document"},
		"half a text":  {sound + `"`, "data after the document"},
		"a zero byte":  {sound + "\x00", "data after the document"},
		"two models":   {sound + sound, "data after the document"},
		"a name twice": {`{"learner":{"objective":{},"objective":{}}}`, "a name stands twice in one object"},
		"not a number": {strings.Replace(sound, "[0.5,10,20]", `[0.5,"10",20]`, 1), "trees[0].split_conditions[1]: is not a number"},
		"NaN":          {strings.Replace(sound, "[0.5,10,20]", `[NaN,10,20]`, 1), "trees[0].split_conditions[0]: is not a number"},
		"-Infinity":    {strings.Replace(sound, "[0.5,10,20]", `[0.5,10, -Infinity]`, 1), "trees[0].split_conditions[2]: is not a number"},

		"too large":     {strings.Replace(sound, "[0.5,10,20]", `[0.5,1e39,20]`, 1), "trees[0].split_conditions[1]: must be a number in the range of float32, not 1e39"},
		"a fraction":    {strings.Replace(sound, `"left_children":[1,`, `"left_children":[1.5,`, 1), "trees[0].left_children[0]: must be an integer of 32 bits, not 1.5"},
		"a long number": {strings.Replace(sound, `"left_children":[1,`, `"left_children":[99999999999,`, 1), "must be an integer of 32 bits, not 99999999999"},
		"deep":          {strings.Repeat(`{"a":`, 20_000), "the text is not JSON"},
		"trees":         {`{"learner":{"gradient_booster":{"name":"gbtree","model":{"trees":{}}}}}`, "learner.gradient_booster.model.trees: must be an array"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(c.text))
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestReadFolder(t *testing.T) {
	sound := &fstest.MapFile{Data: small().text(t)}
	s, err := ReadFolder(fstest.MapFS{"clicks.json": sound, "likes.json": sound, "notes.txt": {Data: []byte("x")}, "old/a.json": {Data: []byte("x")}}, "models")
	require.NoError(t, err)
	m, err := s.Get("clicks")
	require.NoError(t, err)
	assert.Equal(t, 2, m.Features())
	_, err = s.Get("click")
	assert.EqualError(t, err, `there is no model "click" in models; the nearest is "clicks"`)

	_, err = ReadFolder(fstest.MapFS{"a.json": sound, "b.json": {Data: []byte("{}")}}, "models")
	assert.EqualError(t, err, `models: b.json: learner.gradient_booster.name: is "", must be "gbtree"`)
	s, err = ReadFolder(fstest.MapFS{}, "models")
	require.NoError(t, err)
	_, err = s.Get("x")
	assert.EqualError(t, err, `there is no model "x": there are no files *.json or *.lightgbm in models`)
	_, err = (*Set)(nil).Get("x")
	assert.EqualError(t, err, `there is no model "x": no folder of models is given (--model_dir)`)
	_, err = Read(make([]byte, MaxFileBytes+1))
	assert.EqualError(t, err, "the file has 268435457 bytes, more than 268435456")
}
