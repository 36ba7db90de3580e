// Package kubernetes checks the manifests of a fleet with kustomize and the types of Kubernetes. It is a module of its own,
// since these are large: run test/kubernetes/run.
package kubernetes

import (
	"regexp"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// TestManifests builds them, decodes each strictly, and follows what they refer to.
func TestManifests(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../docs/fleet/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]core.PodTemplateSpec{}
	labels := map[string]map[string]string{}
	config := map[string]core.ConfigMap{}
	for _, r := range built.Resources() {
		b, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		strict := func(to any) {
			if err := yaml.UnmarshalStrict(b, to); err != nil {
				t.Errorf("%s: %v", r.GetName(), err)
			}
		}
		switch r.GetKind() {
		case "DaemonSet":
			var x apps.DaemonSet
			strict(&x)
			pods[x.Name], labels[x.Name] = x.Spec.Template, x.Spec.Selector.MatchLabels
		case "Deployment":
			var x apps.Deployment
			strict(&x)
			pods[x.Name], labels[x.Name] = x.Spec.Template, x.Spec.Selector.MatchLabels
		case "ConfigMap":
			var x core.ConfigMap
			strict(&x)
			config[x.Name] = x
		case "Namespace":
			strict(&core.Namespace{})
		default:
			t.Errorf("%s is of the kind %s, which nobody checks", r.GetName(), r.GetKind())
		}
	}
	if len(pods) != 3 {
		t.Errorf("%d kinds of pods", len(pods))
	}
	for name, pod := range pods {
		for k, v := range labels[name] {
			if pod.Labels[k] != v {
				t.Errorf("%s does not select its own pods", name)
			}
		}
		for _, c := range pod.Spec.Containers {
			known := map[string]bool{}
			for _, from := range c.EnvFrom {
				if from.ConfigMapRef != nil {
					m, ok := config[from.ConfigMapRef.Name]
					if !ok {
						t.Errorf("%s: there is no config map %s", name, from.ConfigMapRef.Name)
					}
					for k := range m.Data {
						known[k] = true
					}
				}
			}
			for _, e := range c.Env {
				known[e.Name] = true
			}
			for _, a := range c.Args {
				for _, v := range regexp.MustCompile(`\$\((\w+)\)`).FindAllStringSubmatch(a, -1) {
					if !known[v[1]] {
						t.Errorf("%s: %s: no variable has that name", name, a)
					}
				}
			}
			for _, m := range c.VolumeMounts {
				if !slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
					t.Errorf("%s: there is no volume %s", name, m.Name)
				}
			}
			if p := c.LivenessProbe; p != nil && !slices.ContainsFunc(c.Ports, func(x core.ContainerPort) bool { return x.Name == p.HTTPGet.Port.StrVal }) {
				t.Errorf("%s: there is no port %s", name, p.HTTPGet.Port.StrVal)
			}
			if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
				t.Errorf("%s may write to its image", name)
			}
		}
	}
}
