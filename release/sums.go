package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// sums writes SHA256SUMS, which sha256sum -c reads.
func (b *build) sums() error {
	files, err := os.ReadDir(b.out)
	if err != nil {
		return err
	}
	var content bytes.Buffer
	for _, f := range files {
		bytes, err := os.ReadFile(filepath.Join(b.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&content, "%x  %s\n", sha256.Sum256(bytes), f.Name())
	}
	fmt.Print(content.String())
	return write(filepath.Join(b.out, "SHA256SUMS"), &content)
}

func sortBy[E any, K cmp.Ordered](list []E, key func(E) K) {
	slices.SortFunc(list, func(a, b E) int { return cmp.Compare(key(a), key(b)) })
}
