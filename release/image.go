package main

import (
	"bytes"
	"io"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image writes a container image with only the programs and their licences: no shell, no
// libraries. `docker load` and `podman load` read it.
func (b *build) image(p platform) error {
	list := []entry{}
	for _, program := range programs {
		list = append(list, entry{"usr/bin/" + program, filepath.Join(b.bin(p), program), 0o755})
	}
	for _, d := range []string{"LICENSE", "NOTICE"} {
		list = append(list, entry{"usr/share/doc/" + packageName + "/" + d, filepath.Join(b.root, d), 0o644})
	}
	var content bytes.Buffer
	if err := b.tar(&content, list); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	})
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, b.config(image, p))
	if err != nil {
		return err
	}
	tag, err := name.NewTag(packageName + ":" + imageTag(b.version))
	if err != nil {
		return err
	}
	return tarball.WriteToFile(b.result("%s.oci.tar", p.arch), tag, image)
}

// config describes how the image runs: as nobody. Live capture needs
// --user 0 --cap-add NET_RAW --network host.
func (b *build) config(image v1.Image, p platform) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // of an image that was made above
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = p.os, p.arch, v1.Time{Time: b.when}
	c.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/rpcrdma-dump"}, User: "65534:65534", WorkingDir: "/",
		Env: []string{"PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    packageName,
			"org.opencontainers.image.version":  b.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	for i := range c.History {
		c.History[i].Created = v1.Time{Time: b.when}
	}
	return c
}

// imageTag is a version as a tag, which must not contain a tilde.
func imageTag(version string) string {
	return string(bytes.ReplaceAll([]byte(version), []byte("~"), []byte("-")))
}
