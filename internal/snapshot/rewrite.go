package snapshot

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Rewrite returns a file with another graph under a right HMAC: what somebody makes who wants to harm. It is for
// tests.
func Rewrite(file []byte, opt Options, change func(graph []byte) []byte) ([]byte, error) {
	h, err := open(file, &opt)
	if err != nil {
		return nil, err
	}
	r, err := zstd.NewReader(bytes.NewReader(h.body))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	graph, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(file[:len(file)-macSize-len(h.body)])
	out = w.EncodeAll(change(graph), out)
	key, _ := opt.mac()
	mac := hmac.New(sha256.New, key)
	mac.Write(out)
	return mac.Sum(out), w.Close()
}
