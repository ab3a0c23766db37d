run "a_server_boots" {
  assert {
    condition     = openstack_compute_instance_v2.web.power_state == "active"
    error_message = "The server is not active."
  }

  assert {
    condition     = startswith(openstack_compute_instance_v2.web.access_ip_v4, "10.9.0.")
    error_message = "The server is not on its network."
  }
}

run "a_new_name_does_not_replace_the_server" {
  variables {
    name = "shop"
  }

  assert {
    condition     = openstack_compute_instance_v2.web.id == run.a_server_boots.id
    error_message = "The server was replaced."
  }
}
