// Package modelserver has model servers for tests and examples. They were written from published specifications alone,
// before rankd's client and without its code, so that both sides cannot share a misreading:
//
//   - Inference: the REST part of the Open Inference Protocol (kserve/open-inference-protocol,
//     specification/protocol/inference_rest.md and open_inference_rest.yaml; kserve/kserve,
//     predict-api/v2/required_api.md for tensor data) with Triton's extensions binary_tensor_data and schedule_policy
//     (triton-inference-server/server, protocol/extension_binary_data.md and extension_schedule_policy.md).
//   - Rerank: Cohere's /v2/rerank (its OpenAPI document), vLLM's and OpenVINO's /rerank of the same form, the /rerank of
//     Text Embeddings Inference (its openapi.json), and SGLang's /v1/rerank (its serving_rerank.py, which is all there is).
//
// They refuse what the specification refuses.
package modelserver
