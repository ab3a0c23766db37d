// Package web boots a web server in an OpenStack cloud.
package web

import (
	"fmt"
	"os"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/extensions/keypairs"
	"github.com/gophercloud/gophercloud/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/openstack/imageservice/v2/images"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/openstack/networking/v2/subnets"
)

// Cloud has a client for each service.
type Cloud struct{ compute, image, network *gophercloud.ServiceClient }

// Connect logs in with the credentials in OS_USERNAME, OS_PASSWORD and so on.
func Connect() (*Cloud, error) {
	provider, err := openstack.AuthenticatedClient(gophercloud.AuthOptions{
		IdentityEndpoint: os.Getenv("OS_AUTH_URL"),
		Username:         os.Getenv("OS_USERNAME"),
		Password:         os.Getenv("OS_PASSWORD"),
		TenantName:       os.Getenv("OS_PROJECT_NAME"),
		DomainName:       os.Getenv("OS_USER_DOMAIN_NAME"),
	})
	if err != nil {
		return nil, err
	}
	region := gophercloud.EndpointOpts{Region: os.Getenv("OS_REGION_NAME")}
	compute, err := openstack.NewComputeV2(provider, region)
	if err != nil {
		return nil, err
	}
	image, err := openstack.NewImageServiceV2(provider, region)
	if err != nil {
		return nil, err
	}
	network, err := openstack.NewNetworkV2(provider, region)
	return &Cloud{compute, image, network}, err
}

// Boot creates a server with its own network and key pair, and returns it once it is ACTIVE.
func (cloud *Cloud) Boot(name, image, flavor string) (*servers.Server, error) {
	pages, err := images.List(cloud.image, images.ListOpts{Name: image}).AllPages()
	if err != nil {
		return nil, err
	}
	found, err := images.ExtractImages(pages)
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%d images are called %s: %w", len(found), image, err)
	}
	network, err := networks.Create(cloud.network, networks.CreateOpts{Name: name}).Extract()
	if err != nil {
		return nil, err
	}
	subnet := subnets.CreateOpts{NetworkID: network.ID, CIDR: "10.9.0.0/24", IPVersion: gophercloud.IPv4}
	if _, err = subnets.Create(cloud.network, subnet).Extract(); err != nil {
		return nil, err
	}
	if _, err = keypairs.Create(cloud.compute, keypairs.CreateOpts{Name: name}).Extract(); err != nil {
		return nil, err
	}
	server, err := cloud.create(keypairs.CreateOptsExt{
		CreateOptsBuilder: servers.CreateOpts{
			Name: name, ImageRef: found[0].ID, FlavorRef: flavor, Networks: []servers.Network{{UUID: network.ID}},
		},
		KeyName: name,
	})
	if err != nil {
		return nil, err
	}
	if err = servers.WaitForStatus(cloud.compute, server.ID, "ACTIVE", 60); err != nil {
		return nil, err
	}
	return servers.Get(cloud.compute, server.ID).Extract()
}

// create tries up to three times while the cloud is busy.
func (cloud *Cloud) create(options servers.CreateOptsBuilder) (server *servers.Server, err error) {
	for try := 0; try < 3; try++ {
		server, err = servers.Create(cloud.compute, options).Extract()
		if _, busy := err.(gophercloud.ErrDefault503); !busy {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return server, err
}
