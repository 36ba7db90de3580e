package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const description = `Where the time of an NFS/RDMA mount goes
rpcrdma-dump shows the transactions of NFS over RDMA in packet captures: the
call, its chunks, the RDMA Reads and Writes, the reply, and where each
microsecond went. rpcrdma-top shows them live. rpcrdma-replay drives the same
workload again. rpcrdma-fleet does it for the captures of many hosts.`

// packages writes the packages of Debian and of RPM. They have no scripts: no
// user is created and no unit is enabled.
func (b *build) packages(p platform) error {
	contents, err := b.contents(p)
	if err != nil {
		return err
	}
	for ext, packager := range map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM} {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: packageName, Arch: p.arch, Platform: "linux", Version: b.version, VersionSchema: "none", Release: "1",
			Section: "net", Priority: "optional", Maintainer: "The authors of the RPC-over-RDMA toolkit <rpcrdma-toolkit@localhost>",
			Description: description, License: "Apache-2.0", MTime: b.when,
			Overridables: nfpm.Overridables{
				Contents: contents,
				RPM:      nfpm.RPM{BuildHost: "localhost", Summary: "Where the time of an NFS/RDMA mount goes", Group: "Applications/Internet"},
			},
		})
		if err := nfpm.PrepareForPackager(info, ext); err != nil {
			return err
		}
		var content bytes.Buffer
		if err := packager.Package(info, &content); err != nil {
			return fmt.Errorf("%s: %w", ext, err)
		}
		if err := write(b.result("%s.%s", p.arch, ext), &content); err != nil {
			return err
		}
	}
	return nil
}

// contents lists the files of a Linux package.
func (b *build) contents(p platform) (files.Contents, error) {
	var list files.Contents
	add := func(source, destination, kind string, mode os.FileMode) {
		list = append(list, &files.Content{
			Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: b.when},
		})
	}
	for _, program := range programs {
		add(filepath.Join(b.bin(p), program), path.Join("/usr/bin", program), files.TypeFile, 0o755)
		for _, s := range shells {
			add(filepath.Join(b.completions(), s.file(program)), path.Join(s.dir, s.file(program)), files.TypeFile, 0o644)
		}
	}
	for _, d := range documents {
		add(filepath.Join(b.root, d), path.Join("/usr/share/doc", packageName, d), files.TypeFile, 0o644)
	}
	// Debian's policy looks for the licence under this name.
	add(filepath.Join(b.root, "LICENSE"), path.Join("/usr/share/doc", packageName, "copyright"), files.TypeFile, 0o644)
	pages, err := os.ReadDir(b.man())
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		packed, err := b.packed(filepath.Join(b.man(), page.Name()))
		if err != nil {
			return nil, err
		}
		add(packed, path.Join("/usr/share/man/man1", page.Name()+".gz"), files.TypeFile, 0o644)
	}
	units, err := filepath.Glob(filepath.Join(b.root, "release", "files", "systemd", "*.service"))
	if err != nil || len(units) == 0 {
		return nil, fmt.Errorf("no units: %w", err)
	}
	for _, unit := range units {
		add(unit, path.Join("/usr/lib/systemd/system", filepath.Base(unit)), files.TypeFile, 0o644)
	}
	share := path.Join("/usr/share", packageName)
	add(filepath.Join(b.root, "release", "files", "extcap"), path.Join(share, "extcap", "rpcrdma"), files.TypeFile, 0o755)
	add(filepath.Join(b.root, "docs", "wireshark", "transactions.lua"), path.Join(share, "wireshark", "transactions.lua"), files.TypeFile, 0o644)
	for _, dashboard := range []string{"rpcrdma-top.json", "rpcrdma-fleet.json"} {
		add(filepath.Join(b.root, "docs", "grafana", dashboard), path.Join(share, "grafana", dashboard), files.TypeFile, 0o644)
	}
	add(filepath.Join(b.root, "docs", "fleet", "nats-server.conf"), path.Join(share, "fleet", "nats-server.conf"), files.TypeFile, 0o644)
	add(filepath.Join(b.root, "release", "files", "rpcrdma.default"), "/etc/default/rpcrdma", files.TypeConfigNoReplace, 0o644)
	// It may hold passwords.
	add(filepath.Join(b.root, "release", "files", "rpcrdma-fleet.default"), "/etc/default/rpcrdma-fleet", files.TypeConfigNoReplace, 0o600)
	return list, nil
}

// packed compresses a manual page, without its name and date.
func (b *build) packed(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var content bytes.Buffer
	z, err := gzip.NewWriterLevel(&content, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := z.Write(text); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	packed := filepath.Join(b.work, filepath.Base(file)+".gz")
	return packed, write(packed, &content)
}
