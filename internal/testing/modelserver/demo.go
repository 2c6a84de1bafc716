package modelserver

import "net/http"

// Demo serves what docs/model-servers.md asks: the model "ctr" by the Open Inference Protocol, and a reranker at /rerank by the
// format of Text Embeddings Inference.
func Demo() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v2/", demoModel())
	mux.Handle("/v2", demoModel())
	mux.Handle("/rerank", &Rerank{Style: TEI, MaxBatch: 32})
	return mux
}

// demoModel scores by price and sales: the more sales and the lower the price, the nearer to 1.
func demoModel() *Inference {
	return &Inference{
		Model: "ctr", Version: "1", Extensions: []string{"binary_tensor_data"},
		Inputs:  []Tensor{{Name: "features", Datatype: "FP32", Shape: []int64{-1, 2}}},
		Outputs: []Tensor{{Name: "score", Datatype: "FP32", Shape: []int64{-1, 1}}},
		Infer: func(inputs map[string]Tensor) ([]Tensor, error) {
			features := inputs["features"]
			score := Tensor{Name: "score", Datatype: "FP32", Shape: []int64{features.Shape[0], 1}}
			for i := 0; i < len(features.Data); i += 2 {
				price, sold := features.Data[i].(float64), features.Data[i+1].(float64)
				if sold != sold { // unknown
					sold = 50
				}
				score.Data = append(score.Data, sold/(sold+2*price))
			}
			return []Tensor{score}, nil
		},
	}
}
