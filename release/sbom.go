package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbom lists the modules that each program of a platform really contains, as
// Go recorded them in it.
func (b *build) sbom(p platform) error {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: b.when.Format("2006-01-02T15:04:05Z"),
		Component: &cyclonedx.Component{BOMRef: packageName, Type: cyclonedx.ComponentTypeApplication, Name: packageName, Version: b.version},
	}
	modules := map[string]cyclonedx.Component{}
	var components []cyclonedx.Component
	var dependencies []cyclonedx.Dependency
	for _, program := range programs {
		file := filepath.Join(b.bin(p), p.executable(program))
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		info, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		components = append(components, cyclonedx.Component{
			BOMRef: program, Type: cyclonedx.ComponentTypeApplication, Name: program, Version: info.Main.Version,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		})
		std := cyclonedx.Component{
			BOMRef: "pkg:golang/std@" + info.GoVersion, Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
			PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
		}
		modules[std.BOMRef] = std
		needs := []string{std.BOMRef}
		for _, m := range info.Deps {
			if m.Replace != nil && m.Replace.Version != "" {
				m = m.Replace
			} else if m.Replace != nil { // by a folder of the same checkout
				m = &debug.Module{Path: m.Path, Version: info.Main.Version}
			}
			url := "pkg:golang/" + m.Path + "@" + m.Version
			modules[url] = cyclonedx.Component{
				BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
			}
			needs = append(needs, url)
		}
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: program, Dependencies: &needs})
	}
	var libraries []cyclonedx.Component
	for _, m := range modules {
		libraries = append(libraries, m)
	}
	sortBy(libraries, func(c cyclonedx.Component) string { return c.BOMRef })
	components = append(components, libraries...)
	bom.Components, bom.Dependencies = &components, &dependencies
	var content bytes.Buffer
	e := cyclonedx.NewBOMEncoder(&content, cyclonedx.BOMFileFormatJSON)
	e.SetPretty(true)
	if err := e.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return write(b.result("%s_%s.cdx.json", p.os, p.arch), &content)
}
